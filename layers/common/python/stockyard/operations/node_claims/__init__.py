"""The use cases of node claims, and the phases of their nodes."""
