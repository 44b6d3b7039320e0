"""The use cases of cloud accounts."""
