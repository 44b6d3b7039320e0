"""EKS as it behaves: clusters, add-ons, access, node groups and their scaling groups."""
