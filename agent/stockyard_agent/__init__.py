"""Stockyard's agent. It runs in a cluster, posts observations and carries out commands. Standard library only."""

VERSION = "1"
"""Version of the protocol between agent and Stockyard. It rises when one side has to distinguish old from new."""
