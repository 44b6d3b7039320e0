"""What a person can do about a failed phase: by the name of its error, and how it goes on by the kind of operation."""

from __future__ import annotations

from stockyard.lifecycle.node_phases import CREATE_NODE, DELETE_NODE, POWER_NODE
from stockyard.lifecycle.phases import CREATE_CLUSTER, DELETE_CLUSTER

_CONSOLE = "Read the cause; of a machine, its console output in the cloud account may say more."
_AWAY = "The service did not answer properly for a long time."
HINTS: dict[str, str] = {
    "CredentialsRevoked": "Check that the account's role exists and trusts this installation with its external id "
    "(POST /v1/cloud-accounts/{id}/verify).",
    "PermissionDenied": "Update the account's role from GET /v1/cloud-accounts/{id}/template.",
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
    "VendorConflict": "Something else in the account still uses or changes it.",
}
_UNKNOWN = "Read the cause; nobody foresaw it."
_GOES_ON: dict[str, str] = {
    CREATE_CLUSTER: "A resume goes on from the phase that failed.",
    CREATE_NODE: "The claim does not try again: delete it and make another.",
    POWER_NODE: "The switch can be asked for again.",
    DELETE_CLUSTER: "The deletion is tried again by itself.",
    DELETE_NODE: "The deletion is tried again by itself.",
}


def hint(error_name: str, kind: str) -> str:
    """Advice for an error by class name, for an operation of this kind."""
    return f"{HINTS.get(error_name, _UNKNOWN)} {_GOES_ON[kind]}"
