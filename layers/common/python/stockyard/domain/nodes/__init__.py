"""Node providers, node types and node claims: records, views, manifests."""
