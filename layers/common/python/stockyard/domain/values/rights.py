"""With whose rights something is done in a cluster that a person has asked for."""

from __future__ import annotations

ADMIN, OPERATOR = "admin", "operator"
"""The rights of an administrator of the tenant, and those of everybody else who may change clusters."""


def of_person(*, admin: bool) -> str:
    """The rights of who is an administrator, or is none."""
    return ADMIN if admin else OPERATOR
