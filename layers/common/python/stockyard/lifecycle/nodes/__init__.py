"""Legal moves of node claims: phases, drift, loss, interruption and draining."""
