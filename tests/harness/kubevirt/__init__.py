"""A host with KubeVirt in this process."""
