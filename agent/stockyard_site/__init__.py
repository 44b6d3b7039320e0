"""Connector of a site. It runs in the owner's network, fetches requests and carries out what its owner allows."""

VERSION = "1"
"""Version of the protocol between connector and Stockyard."""
