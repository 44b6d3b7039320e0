"""Accounts that runs have their machines in."""

from __future__ import annotations

from stockyard.domain.records import CloudAccount
from stockyard.ports.runs import RunnerAccount


def account(identifier: str = "1", number: str = "123456789012", role: str = "tenant") -> CloudAccount:
    """An account of AWS with a role."""
    return CloudAccount(
        id=identifier,
        provider="aws",
        name="main",
        description="",
        attributes={"role_arn": f"arn:aws:iam::{number}:role/{role}"},
        external_id="external-1",
        verification="verified",
        verification_message="",
        created_at="2026-01-31T12:00:00Z",
        updated_at="2026-01-31T12:00:00Z",
    )


def runner_account(
    tenant: str = "acme", own_account: CloudAccount | None = None, region: str = "eu-central-1"
) -> RunnerAccount:
    """A place in an account of the tenant's."""
    return RunnerAccount(tenant, own_account or account(), region, "op_1")
