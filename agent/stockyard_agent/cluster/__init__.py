"""Facts of the cluster that the agent knows beside pods: nodes, storage, DaemonSets and namespaces."""
