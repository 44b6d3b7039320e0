"""Rights of people and machines in a cluster on EKS."""
