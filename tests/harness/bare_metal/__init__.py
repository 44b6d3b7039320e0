"""Hosts of bare metal with their operator, for tests."""
