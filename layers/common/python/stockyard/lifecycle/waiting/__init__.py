"""Facts that are learned of pods that wait."""
