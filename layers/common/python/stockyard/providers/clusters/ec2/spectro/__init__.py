"""Clusters as documents of Spectro Cloud."""
