"""The rules of disruption: what it costs to take a node away, and what may not be disrupted. Pure, as all decisions."""
