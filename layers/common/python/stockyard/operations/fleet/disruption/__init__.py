"""Nodes leave: which of them a cluster would do better without, and how they are replaced."""
