"""A real Prometheus, which scrapes the numbers of a tenant."""
