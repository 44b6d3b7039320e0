"""Stockyard's agent: runs in a tenant's cluster, posts what it sees, carries out what it is told. Standard library."""

VERSION = "1"
"""Of the wire between agent and Stockyard; it rises when either has to tell the difference."""
