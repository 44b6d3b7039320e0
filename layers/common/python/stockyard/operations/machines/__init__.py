"""What machines and the agents of clusters ask and report."""
