"""Node providers, types, claims and environments as callers send and see them."""
