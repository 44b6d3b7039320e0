"""Nodes on machines of Cudo Compute: the kind ``cudo``."""
