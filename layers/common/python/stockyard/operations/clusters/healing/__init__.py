"""Replaces members of control planes that are lost or unhealthy."""
