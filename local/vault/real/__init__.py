"""A real Vault in memory."""
