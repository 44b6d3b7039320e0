"""What the agent knows of its cluster beside pods: nodes, storage, DaemonSets and namespaces."""
