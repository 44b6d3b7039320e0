"""Advice for a person about a failed phase, by the name of its error."""

from __future__ import annotations

_CONSOLE = "Read the cause; of a machine, its console output in the cloud account may say more."
_AWAY = "The service did not answer properly for a long time."
HINTS: dict[str, str] = {
    "CredentialsRevoked": "Check the account's key, or that its role exists and trusts this installation with its "
    "external id (POST /v1/cloud-accounts/{id}/verify).",
    "PermissionDenied": "Give the account the key of somebody who may do it, or update its role from GET "
    "/v1/cloud-accounts/{id}/template. What a policy of its organization denies needs what that policy asks for, as a "
    "tag of the cluster's.",
    "VendorQuotaExceeded": "Raise the quota in the cloud account, or remove what is no longer used.",
    "InsufficientCapacity": "There is none just now; another instance type, zone or subnet may have some.",
    "VendorNotFound": "Something that it was told to use is gone. Bring it back, or ask anew with other settings.",
    "VendorRefused": "Read the cause, and correct the account or the service.",
    "PhaseTimedOut": _CONSOLE,
    "NodeCouldNotBeProvisioned": _CONSOLE,
    "ExecutionLost": "What worked on it ended without an answer.",
    "VendorThrottled": _AWAY,
    "VendorUnavailable": _AWAY,
    "VendorTimeout": _AWAY,
    "NotYetVisible": _AWAY,
    "QuorumLost": "etcd serves nothing any more and takes no change of its members. Start machines that were only"
    " stopped, if there are any; else restore a snapshot of it (docs/restore.md, Restore a cluster's etcd): what was"
    " written since is lost.",
    "VendorConflict": "Something else in the account still uses or changes it.",
}
_UNKNOWN = "Read the cause; nobody foresaw it."


def hint(error_name: str, advice: str) -> str:
    """Advice about an error by class name; ``advice`` says how the operation goes on (``Procedure.advice``)."""
    return f"{HINTS.get(error_name, _UNKNOWN)} {advice}"
