"""Manifests as they are sent, read and shown."""
