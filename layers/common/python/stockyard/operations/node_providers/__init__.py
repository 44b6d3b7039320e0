"""The use cases of node providers, node types and the catalogue."""
