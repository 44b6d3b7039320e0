"""Which node type a claim gets: pure functions of a catalogue, claims and what is scarce."""
