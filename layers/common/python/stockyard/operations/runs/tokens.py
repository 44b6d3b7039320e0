"""Secrets of runs: the token of a run's program, and the passphrase by which programs seal a state. Both are derived
from the installation's key, and stored nowhere."""

from __future__ import annotations

import hmac

from stockyard.domain.clusters.join_tokens import run_secret, state_passphrase
from stockyard.errors import Unauthorized

REFUSED = "The token is not that of a run that is under way."


def token_of(key: bytes, tenant: str, run_id: str) -> str:
    """The token of a run: the tenant's name, a dot, and 256 bits as hexadecimal text."""
    return f"{tenant}.{run_secret(key, tenant, run_id)}"


def passphrase_of(key: bytes, tenant: str, workspace: str) -> str:
    """The passphrase of a state: 256 bits as hexadecimal text."""
    return state_passphrase(key, tenant, workspace)


def tenant_of(key: bytes, token: str | None, run_id: str) -> str:
    """The tenant of the run that the token is of. ``Unauthorized`` for any other token."""
    tenant, _, _ = (token or "").rpartition(".")
    if not tenant or not hmac.compare_digest(str(token).encode(), token_of(key, tenant, run_id).encode()):
        raise Unauthorized(REFUSED)
    return tenant
