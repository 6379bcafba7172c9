"""Experiments: sweeps and independent draws of tasks, gates and networks, the methods that measure them, and their files."""
