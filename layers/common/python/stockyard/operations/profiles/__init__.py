"""The use cases of cluster profiles."""
