"""Manifests as a person applies them."""
