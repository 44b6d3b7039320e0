"""Recorded calls of our own roles, and the tasks of our workflows, as what AWS would check.

What it checks in a tenant's account the local cloud asks itself; see ``local.aws.permissions``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from local.aws.permissions.policies import Ask

Call = Mapping[str, Any]


def workflow_asks(document: Mapping[str, Any]) -> list[Ask]:
    """Permission checks of AWS for the tasks of a deployed workflow document with the state machine's role."""
    asks = []
    for name, state in document["States"].items():
        if state["Type"] in {"Map", "Parallel"}:
            raise KeyError(f"{name}: the states within a {state['Type']} state are not known here")
        if state["Type"] == "Task":
            resource = state["Resource"].removesuffix(".waitForTaskToken")
            if resource != "arn:aws:states:::lambda:invoke":
                raise KeyError(f"{name}: {resource}")
            asks.append(Ask("lambda:InvokeFunction", state["Parameters"]["FunctionName"]))
    return asks


def own_asks(call: Call, account: str, task_workflow: str) -> list[Ask]:
    """Permission checks of AWS for a call with a function's own role. ``task_workflow``: ARN of what task tokens belong
    to."""
    service, operation, parameters = call["service"], call["operation"], call["parameters"]
    here = f"{call['region']}:{account}"
    if service == "DynamoDB":
        return _table_asks(operation, parameters, f"arn:aws:dynamodb:{here}:table/")
    if service == "SFN":
        arn = parameters.get("executionArn") or parameters.get("stateMachineArn") or task_workflow
        return [Ask(f"states:{operation}", arn)]
    if service in ("EventBridge", "KMS", "Lambda", "Secrets Manager"):
        return [_named_ask(service, operation, parameters, here)]
    if service == "S3":
        return [Ask(f"s3:{operation}", f"arn:aws:s3:::{parameters['Bucket']}/{parameters['Key']}")]
    if service == "STS":
        context = {"sts:ExternalId": parameters["ExternalId"]} if parameters.get("ExternalId") else {}
        return [Ask(f"sts:{operation}", parameters["RoleArn"], context)]
    return [Ask(f"{ {'Pricing': 'pricing', 'EC2': 'ec2', 'EKS': 'eks'}[service] }:{operation}", "*")]


def _named_ask(service: str, operation: str, parameters: Mapping[str, Any], here: str) -> Ask:
    if service == "Lambda":
        return Ask("lambda:InvokeFunction", f"arn:aws:lambda:{here}:function:{parameters['FunctionName']}")
    if service == "Secrets Manager":
        secret = f"arn:aws:secretsmanager:{here}:secret:{parameters['SecretId']}-AbCdEf"
        return Ask(f"secretsmanager:{operation}", secret)
    if service == "KMS":
        sealed_for = {f"kms:EncryptionContext:{key}": value for key, value in parameters["EncryptionContext"].items()}
        context = {"kms:RequestAlias": parameters["KeyId"], **sealed_for}
        return Ask(f"kms:{operation}", f"arn:aws:kms:{here}:key/0a1b", context)
    bus = parameters["EventBusName"].rsplit("/", 1)[-1]
    return Ask(f"events:{operation}", f"arn:aws:events:{here}:event-bus/{bus}")


def _table_asks(operation: str, parameters: Mapping[str, Any], root: str) -> list[Ask]:
    if "writes" in parameters:
        commands = {
            "Put": "PutItem",
            "Update": "UpdateItem",
            "Delete": "DeleteItem",
            "ConditionCheck": "ConditionCheckItem",
        }
        return [Ask(f"dynamodb:{commands[command]}", root + table) for command, table in parameters["writes"]]
    if "tables" in parameters:
        return [Ask(f"dynamodb:{operation}", root + table) for table in parameters["tables"]]
    index = f"/index/{parameters['IndexName']}" if parameters.get("IndexName") else ""
    return [Ask(f"dynamodb:{operation}", root + parameters["TableName"] + index)]
