"""Figures of the reproduction: drawing only, each module is imported by the script that needs it."""
