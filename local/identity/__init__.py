"""The identity provider: a stand-in for Keycloak, or a real one."""
