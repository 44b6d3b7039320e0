"""Stockyard's agent. It runs in a cluster, posts observations and carries out commands. Standard library only."""

VERSION = "2"
"""Version of the protocol between agent and Stockyard. It rises when one side has to distinguish old from new.

2: comes at once when a node says that its cloud takes it back.
"""
