"""What a history of pods would have cost: arrivals and departures replayed against a policy of disruption. Pure."""
