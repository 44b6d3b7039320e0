"""Simulated hours of a cluster: the product's own passes, workflows and agent over a played cluster, and a judge."""
