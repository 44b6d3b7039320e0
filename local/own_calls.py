"""Recorded calls of our own roles, and the tasks of our workflows, as what AWS would check. See ``local.calls``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from local.calls import Call
from local.policies import Ask


def workflow_asks(document: Mapping[str, Any]) -> list[Ask]:
    """What AWS checks for the tasks of a deployed workflow document with the state machine's role."""
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
    """What AWS checks for a call with a function's own role. ``task_workflow``: ARN of what task tokens belong to."""
    service, operation, given = call["service"], call["operation"], call["parameters"]
    here = f"{call['region']}:{account}"
    if service == "DynamoDB":
        return _table_asks(operation, given, f"arn:aws:dynamodb:{here}:table/")
    if service == "Secrets Manager":
        name = given.get("SecretId") or given.get("Name")
        arn = f"arn:aws:secretsmanager:{here}:secret:{name}-AbCdEf" if name else "*"
        asks = [Ask(f"secretsmanager:{operation}", arn)]
        return [*asks, Ask("secretsmanager:TagResource", arn)] if given.get("Tags") else asks
    if service == "SFN":
        arn = given.get("executionArn") or given.get("stateMachineArn") or task_workflow
        return [Ask(f"states:{operation}", arn)]
    if service == "EventBridge":
        bus = given["EventBusName"].rsplit("/", 1)[-1]
        return [Ask(f"events:{operation}", f"arn:aws:events:{here}:event-bus/{bus}")]
    if service == "STS":
        context = {"sts:ExternalId": given["ExternalId"]} if given.get("ExternalId") else {}
        return [Ask(f"sts:{operation}", given["RoleArn"], context)]
    return [Ask(f"{ {'Pricing': 'pricing', 'EC2': 'ec2'}[service] }:{operation}", "*")]


def _table_asks(operation: str, given: Mapping[str, Any], root: str) -> list[Ask]:
    if "writes" in given:
        deeds = {
            "Put": "PutItem",
            "Update": "UpdateItem",
            "Delete": "DeleteItem",
            "ConditionCheck": "ConditionCheckItem",
        }
        return [Ask(f"dynamodb:{deeds[deed]}", root + table) for deed, table in given["writes"]]
    if "tables" in given:
        return [Ask(f"dynamodb:{operation}", root + table) for table in given["tables"]]
    index = f"/index/{given['IndexName']}" if given.get("IndexName") else ""
    return [Ask(f"dynamodb:{operation}", root + given["TableName"] + index)]
