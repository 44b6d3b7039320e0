"""Gives people and the agent access to a cluster."""
