"""Proves that a tenant's role works, and that it cannot be assumed without the external id (the confused deputy)."""

from __future__ import annotations

from stockyard.domain.records import CloudAccount
from stockyard.errors import CredentialsRevoked, PermissionDenied
from stockyard.providers.aws.sessions import SessionFactory, Sessions, account_number, role_arn

SESSION = "stockyard-verify"


class Ec2AccountVerifier:
    """``ports.AccountVerifier`` for AWS accounts."""

    def __init__(self, session_factory: SessionFactory) -> None:
        self._sessions = Sessions(session_factory)

    def verify(self, account: CloudAccount, tenant: str) -> str | None:  # noqa: ARG002 - the port names it
        """None when all is well, else why not. Raises retryable ``VendorError`` leaves when AWS cannot be asked."""
        try:
            arn = role_arn(account)
            keys = self._sessions.assume(arn, SESSION, account.external_id)
        except (CredentialsRevoked, PermissionDenied) as error:
            return f"The role cannot be assumed with the external id of this account: {error.detail}"
        if not keys.get("AccessKeyId"):
            return f"AWS gave no keys for {arn}."
        if not account_number(account).isdigit():
            return f"{arn} names no AWS account."
        try:
            self._sessions.assume(arn, SESSION, None)
        except PermissionDenied:
            return None
        return (
            f"{arn} can be assumed without the external id, so others could use it through us. "
            "Deploy the account's current template again."
        )
