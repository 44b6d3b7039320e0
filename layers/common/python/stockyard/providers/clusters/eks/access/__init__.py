"""Who may do what in a cluster on EKS."""
