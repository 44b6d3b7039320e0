"""Networks in AWS: subnets, security groups and address ranges."""
