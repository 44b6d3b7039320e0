"""Measurements: the time of imports and claims, and the price of a stage."""
