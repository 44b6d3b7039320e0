"""Simulated cost of a history of pods: arrivals and departures replayed against a policy of disruption. Pure."""
