"""Clusters as callers send and see them."""
