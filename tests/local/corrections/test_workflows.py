"""A stopped execution ends, even while it waits for a task token."""

from __future__ import annotations

import json
import threading
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from local.aws.accounts import OWN_ACCOUNT, REGION
from local.aws.corrections.workflows import (
    MOTO_CONFIG,
    functions_run,
    limited_histories,
    scaled_waits,
    unread_documents,
)
from local.functions.invocation import Invocation
from tests.harness.worlds.inprocess import credentials

DOCUMENT = {
    "StartAt": "wait",
    "States": {
        "wait": {
            "Type": "Task",
            "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
            "Parameters": {"FunctionName": "f", "Payload": {"token.$": "$$.Task.Token"}},
            "TimeoutSeconds": 3600,
            "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "undo"}],
            "End": True,
        },
        "undo": {
            "Type": "Task",
            "Resource": "arn:aws:states:::lambda:invoke",
            "Parameters": {"FunctionName": "g"},
            "End": True,
        },
    },
}


class Functions:
    """Remembers the names of the called functions."""

    def __init__(self) -> None:
        self.called: list[str] = []
        self.first = threading.Event()

    def invoke(self, function: str, _payload: bytes) -> Invocation:
        self.called.append(function)
        self.first.set()
        return Invocation(b"{}")


def test_stop_ends_the_wait_for_a_token_without_compensation() -> None:
    functions = Functions()
    with mock_aws(config=MOTO_CONFIG), functions_run(functions), scaled_waits(0.01), credentials(OWN_ACCOUNT):
        client: Any = boto3.client("stepfunctions", region_name=REGION)
        role = f"arn:aws:iam::{OWN_ACCOUNT}:role/workflows"
        machine = client.create_state_machine(name="m", definition=json.dumps(DOCUMENT), roleArn=role)
        execution = client.start_execution(stateMachineArn=machine["stateMachineArn"])["executionArn"]
        assert functions.first.wait(60)
        client.stop_execution(executionArn=execution)
        pause = threading.Event()
        for _ in range(600):
            if (status := client.describe_execution(executionArn=execution)["status"]) != "RUNNING":
                break
            pause.wait(0.1)
        assert status == "ABORTED"
        assert functions.called == ["f"]


def test_a_document_is_not_read_when_it_is_made_and_moto_reads_it() -> None:
    """moto parses each of fourteen documents at a start, which takes it a second."""
    wrong = json.dumps({"StartAt": "a", "States": {"a": {"Type": "Nothing"}}})
    with mock_aws(config=MOTO_CONFIG), credentials(OWN_ACCOUNT):
        client: Any = boto3.client("stepfunctions", region_name=REGION)
        role = f"arn:aws:iam::{OWN_ACCOUNT}:role/workflows"
        with pytest.raises(ClientError, match="ASLParserException"):
            client.create_state_machine(name="m", definition=wrong, roleArn=role)
        with unread_documents():
            machine = client.create_state_machine(name="m", definition=wrong, roleArn=role)["stateMachineArn"]
        assert machine.endswith(":stateMachine:m")


def test_an_execution_fails_for_good_when_its_history_is_full() -> None:
    looks = {
        "look": {
            "Type": "Task",
            "Resource": "arn:aws:states:::lambda:invoke",
            "Parameters": {"FunctionName": "f"},
            "Retry": [{"ErrorEquals": ["States.ALL"]}],
            "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "look"}],
            "Next": "wait",
        },
        "wait": {"Type": "Wait", "Seconds": 60, "Next": "look"},
    }
    functions = Functions()
    with (
        mock_aws(config=MOTO_CONFIG),
        functions_run(functions),
        limited_histories(100),
        scaled_waits(0),
        credentials(OWN_ACCOUNT),
    ):
        client: Any = boto3.client("stepfunctions", region_name=REGION)
        role = f"arn:aws:iam::{OWN_ACCOUNT}:role/workflows"
        text = json.dumps({"StartAt": "look", "States": looks})
        machine = client.create_state_machine(name="m", definition=text, roleArn=role)
        execution = client.start_execution(stateMachineArn=machine["stateMachineArn"])["executionArn"]
        pause = threading.Event()
        for _ in range(600):
            if (description := client.describe_execution(executionArn=execution))["status"] != "RUNNING":
                break
            pause.wait(0.1)
        assert (description["status"], description["error"]) == ("FAILED", "States.Runtime")
        events = client.get_execution_history(executionArn=execution, maxResults=1000)["events"]
        assert (len(events), events[-1]["type"]) == (100, "ExecutionFailed")
        assert len(functions.called) == (100 - 2) // 7
