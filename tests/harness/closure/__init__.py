"""The closure of rights: what whoever holds a session of ours in a tenant's account can change, by any chain of
calls."""
