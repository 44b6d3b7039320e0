"""Plain values and their rules: quantities, durations, times, identifiers, requirements."""
