"""Benchmarks of what our own account pays for: sweeps of accounts, lives of nodes, memory of functions."""
