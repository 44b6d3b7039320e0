"""Questions and reports of machines and of the agents of clusters."""
