"""The catalogue's refresh, by schedule."""
