"""A head node in memory, with those who work on it."""
