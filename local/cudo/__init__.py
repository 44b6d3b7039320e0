"""Cudo Compute in the local cloud."""
