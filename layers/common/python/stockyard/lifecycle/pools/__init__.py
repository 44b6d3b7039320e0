"""Legal moves of pools: sizes, drift, spread over zones and replacement."""
