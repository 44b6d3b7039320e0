"""How much a tenant may have."""
