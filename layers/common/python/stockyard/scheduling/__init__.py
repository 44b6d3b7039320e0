"""Scheduling: which offering a claim gets. Pure functions of a catalogue, claims and availability."""
