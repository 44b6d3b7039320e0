"""The network of a cluster on EC2: addresses, security groups, load balancer and bastion."""
