"""Builds the real program."""
