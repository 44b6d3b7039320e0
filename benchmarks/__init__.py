"""Figures: what imports cost, what a stage costs."""
