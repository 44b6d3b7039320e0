"""EC2 as it behaves: machines, capacity, prices of spot, consoles and balancers."""
