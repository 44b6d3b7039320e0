"""Limits of a tenant."""
