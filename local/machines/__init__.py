"""Machines that boot, and the service that clusters are handed to."""
