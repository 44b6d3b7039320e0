"""Self-managed Kubernetes clusters on machines of Cudo Compute."""
