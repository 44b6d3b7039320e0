"""The simulated Kubernetes clusters."""
