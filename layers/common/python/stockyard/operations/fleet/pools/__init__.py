"""The use cases of pools: made, changed, deleted, and kept at the nodes that they are to have."""
