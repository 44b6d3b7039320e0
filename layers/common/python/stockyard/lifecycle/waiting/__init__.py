"""What is learned of pods that wait."""
