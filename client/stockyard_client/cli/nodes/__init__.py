"""Commands of claims, providers and types: where nodes come from, and why."""
