"""Sending what the outbox holds."""
