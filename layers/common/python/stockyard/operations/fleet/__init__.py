"""The nodes of a cluster: what they are, and what is made of them."""
