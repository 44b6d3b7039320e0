"""Binding claims to node types."""
