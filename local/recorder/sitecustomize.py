"""Records every AWS call of a function. Python loads this module by itself when ``PYTHONPATH`` has its folder.

Each call is a JSON line in the file that ``STOCKYARD_CALLS`` names: the caller, the operation and the resource. Values,
items and user data are not written, because they may be secret.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

NAMES_ONLY: Mapping[str, tuple[str, ...]] = {
    "DynamoDB": ("TableName", "IndexName"),
    "KMS": ("KeyId", "EncryptionContext"),
    "Secrets Manager": ("Name", "SecretId"),
    "SFN": ("stateMachineArn", "executionArn"),
    "STS": ("RoleArn", "ExternalId"),
    "SSM": ("Name",),
}
"""Service -> the parameters that are recorded. For other services all parameters except :data:`HELD_BACK` are."""
HELD_BACK = frozenset({"UserData", "Entries", "PolicyDocument", "AssumeRolePolicyDocument"})
COUNTED = frozenset({"BatchGetItem", "GetItem", "PutItem", "Query", "TransactWriteItems", "UpdateItem"})
"""DynamoDB's calls whose consumed units are recorded."""
MAKING = ("Create", "Run", "Allocate", "Associate")
"""Calls whose answer is recorded too, because it names the created resource."""


def described(service: str, operation: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that identify the resource of a call, and no others."""
    if service == "EventBridge":
        return {"EventBusName": parameters["Entries"][0].get("EventBusName", "default")}
    if operation.startswith("Transact"):
        writes = [
            (command, write.get("TableName")) for item in parameters["TransactItems"] for command, write in item.items()
        ]
        return {"writes": sorted(set(writes))}
    if service == "DynamoDB" and "RequestItems" in parameters:
        return {"tables": sorted(parameters["RequestItems"])}
    names = NAMES_ONLY.get(service)
    return {k: _without_held_back(v) for k, v in parameters.items() if (k in names if names else k not in HELD_BACK)}


def _without_held_back(value: Any) -> Any:
    return (
        {k: _without_held_back(v) for k, v in value.items() if k not in HELD_BACK} if isinstance(value, dict) else value
    )


def units(consumed: Any) -> dict[str, float]:
    """Read and write units that a call consumed, over all tables."""
    tables = consumed if isinstance(consumed, list) else [consumed or {}]
    names = {"read": "ReadCapacityUnits", "write": "WriteCapacityUnits"}
    return {short: float(sum(table.get(name, 0) for table in tables)) for short, name in names.items()}


def install(path: str) -> None:
    """Wraps the recorder around botocore's function for all calls."""
    from botocore.client import BaseClient
    from botocore.exceptions import ClientError

    original: Any = BaseClient._make_api_call  # type: ignore[attr-defined]
    own_key = os.environ.get("AWS_ACCESS_KEY_ID")
    function = os.environ.get("_HANDLER", "").split(".")[1:2]

    def recorded(client: Any, operation: str, parameters: Mapping[str, Any]) -> Any:
        service = str(client.meta.service_model.service_id)
        credentials = client._request_signer._credentials
        own = credentials is not None and credentials.access_key == own_key
        line: dict[str, Any] = {
            "function": "".join(function),
            "side": "own" if own else "tenant",
            "service": service,
            "operation": operation,
            "region": client.meta.region_name,
            "parameters": described(service, operation, parameters),
        }
        if service == "DynamoDB" and operation in COUNTED:
            parameters = {**parameters, "ReturnConsumedCapacity": "TOTAL"}
        try:
            answer = original(client, operation, parameters)
            if service == "DynamoDB" and operation in COUNTED:
                line["units"] = units(answer.get("ConsumedCapacity"))
            if operation.startswith(MAKING) and service not in NAMES_ONLY:
                line["answer"] = {k: v for k, v in answer.items() if k != "ResponseMetadata"}
            return answer
        except ClientError as fault:
            line["error"] = fault.response.get("Error", {}).get("Code", "")
            raise
        finally:
            _write(path, json.dumps(line, default=str) + "\n")

    BaseClient._make_api_call = recorded  # type: ignore[attr-defined]


def _write(path: str, text: str) -> None:
    # One write in append mode: lines of several processes do not mix.
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


if os.environ.get("STOCKYARD_CALLS"):
    install(os.environ["STOCKYARD_CALLS"])
