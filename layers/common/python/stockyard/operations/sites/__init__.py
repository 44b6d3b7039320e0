"""Sites: places of tenants that only their own connectors reach."""
