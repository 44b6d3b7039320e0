"""A real OpenTofu, which runs the templates of node providers."""
