"""Nodes that a cluster would do better without: the nodes that go, the cheaper ones that come, and what that saves."""
