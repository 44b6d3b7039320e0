"""A tenant's Vault in the local cloud, and for tests: a simulated one, and how a real one is built."""
