"""Pools as callers send and see them, in each published form."""
