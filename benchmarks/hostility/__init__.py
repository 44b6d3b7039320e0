"""Attacks on a served stage, and the tenant that is not to feel them."""
