"""Deletes clusters with everything that belongs to them."""
