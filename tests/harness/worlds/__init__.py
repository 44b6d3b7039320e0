"""Worlds in memory: clouds, clusters and the workflows, without a socket."""
