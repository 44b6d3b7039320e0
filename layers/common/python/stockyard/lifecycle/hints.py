"""What a person can do about a failed phase, by the name of its error."""

from __future__ import annotations

HINTS: dict[str, str] = {
    "CredentialsRevoked": "Check that the account's role exists and trusts this installation with its external id "
    "(POST /v1/cloud-accounts/{id}/verify), then resume.",
    "PermissionDenied": "Update the account's role from GET /v1/cloud-accounts/{id}/template, then resume.",
    "VendorQuotaExceeded": "Raise the quota in the cloud account, or remove what is no longer used, then resume.",
    "InsufficientCapacity": "Choose another instance type or subnet, or resume later.",
    "VendorNotFound": "Something the cluster was told to use is gone. Create the cluster again with other settings.",
    "VendorRefused": "Read the cause, correct the account or the service, then resume.",
    "PhaseTimedOut": "Resume to try again; the machine's console output in the cloud account may say more.",
}
_RETRYABLE = "The service did not answer properly for a long time. Resume when it is back."


def hint(error_name: str) -> str:
    """Advice for an error by class name; retryable errors share one."""
    return HINTS.get(error_name, _RETRYABLE)
