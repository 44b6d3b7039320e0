"""The use cases of clusters."""
