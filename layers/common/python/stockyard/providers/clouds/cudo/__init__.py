"""Cudo Compute: accounts by project and API key, and what drivers and sources in Cudo share."""
