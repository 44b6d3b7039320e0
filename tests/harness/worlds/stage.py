"""The values of this installation that a tenant's template contains, for the tests."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Stage:
    """The values of a development stage."""

    name_prefix: str = "vantage"
    principal_pattern: str = "arn:aws:iam::111111111111:role/Stockyard-dev-*"
    allow_access_keys: bool = False
