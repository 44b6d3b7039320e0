"""The full counts by parts: a part that no change touched since its last run is not run again."""
