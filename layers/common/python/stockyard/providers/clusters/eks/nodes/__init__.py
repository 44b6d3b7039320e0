"""Node groups of EKS: launch templates, sizes and replacement."""
