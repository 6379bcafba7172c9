"""Methods: what is computed for each draw and point of an experiment.

A method is a function (curve, task, gates, draw, point) that returns, for each inner point of the curve, a dict of numbers
and DataArrays.
"""
