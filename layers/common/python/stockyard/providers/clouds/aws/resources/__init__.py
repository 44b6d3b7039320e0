"""Makes, tags, finds and removes resources in a tenant's account."""
