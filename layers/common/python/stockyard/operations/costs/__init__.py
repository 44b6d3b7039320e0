"""Costs of a tenant, and the budgets of its months."""
