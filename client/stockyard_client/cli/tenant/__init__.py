"""Commands of a tenant: accounts, quotas, people and costs."""
