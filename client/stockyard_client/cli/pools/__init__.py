"""Commands of pools, disruption and plans."""
