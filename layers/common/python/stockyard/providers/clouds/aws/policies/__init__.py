"""The template of a tenant's account: its roles and policies, statement by statement, and its versions."""
