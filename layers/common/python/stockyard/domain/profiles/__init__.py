"""Cluster profiles and their packs."""
