"""``ports.Workflows`` in memory and on Step Functions (moto), and ``ports.Bus`` in memory and on EventBridge."""

from __future__ import annotations

import json
from collections.abc import Iterator

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws

from stockyard.adapters.bus import EventBridgeBus
from stockyard.adapters.workflows import StepFunctionsWorkflows, execution_arn
from stockyard.errors import VendorNotFound, VendorRefused, VendorThrottled, VendorUnavailable
from stockyard.ports import Workflows
from tests.harness.worlds.memory import MemoryBus, MemoryWorkflows

ACCOUNT = "123456789012"
NAME = "provision-cluster"
WORKFLOW = f"arn:aws:states:us-east-1:{ACCOUNT}:stateMachine:stockyard-test-{NAME}"


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        yield


@pytest.fixture
def client(cloud: None):
    client = boto3.client("stepfunctions", region_name="us-east-1")
    client.create_state_machine(
        name=WORKFLOW.rsplit(":", 1)[1],
        definition=json.dumps({"StartAt": "Done", "States": {"Done": {"Type": "Succeed"}}}),
        roleArn=f"arn:aws:iam::{ACCOUNT}:role/x",
    )
    return client


@pytest.fixture(params=["memory", "step-functions"])
def workflows(request: pytest.FixtureRequest) -> Workflows:
    if request.param == "memory":
        return MemoryWorkflows()
    return StepFunctionsWorkflows(request.getfixturevalue("client"))


def test_execution_runs_until_stopped(workflows: Workflows):
    assert workflows.running(WORKFLOW, "op_1") is False
    workflows.start(WORKFLOW, "op_1", {"cluster_id": "clu_1"})
    assert workflows.running(WORKFLOW, "op_1") is True
    assert workflows.running(WORKFLOW, "op_2") is False
    workflows.stop(WORKFLOW, "op_1")
    assert workflows.running(WORKFLOW, "op_1") is False


def test_starting_an_existing_execution_succeeds(workflows: Workflows):
    workflows.start(WORKFLOW, "op_1", {"n": 1})
    workflows.start(WORKFLOW, "op_1", {"n": 1})
    workflows.start(WORKFLOW, "op_1", {"n": 2})
    workflows.stop(WORKFLOW, "op_1")
    workflows.start(WORKFLOW, "op_1", {"n": 1})
    assert workflows.running(WORKFLOW, "op_1") is False


def test_stopping_missing_execution_succeeds(workflows: Workflows):
    workflows.stop(WORKFLOW, "never")
    workflows.start(WORKFLOW, "op_1", {})
    workflows.stop(WORKFLOW, "op_1")
    workflows.stop(WORKFLOW, "op_1")
    assert workflows.running(WORKFLOW, "op_1") is False


def test_repeated_start_keeps_first_payload(client):
    workflows = StepFunctionsWorkflows(client)
    workflows.start(WORKFLOW, "op_1", {"n": 1})
    workflows.start(WORKFLOW, "op_1", {"n": 2})
    executions = client.list_executions(stateMachineArn=WORKFLOW)["executions"]
    assert [execution["executionArn"] for execution in executions] == [execution_arn(WORKFLOW, "op_1")]
    assert json.loads(client.describe_execution(executionArn=executions[0]["executionArn"])["input"]) == {"n": 1}


def test_workflows_are_started_by_name(client):
    workflows = StepFunctionsWorkflows(client, WORKFLOW.removesuffix(NAME))
    workflows.start(NAME, "op_1", {})
    assert client.describe_execution(executionArn=execution_arn(WORKFLOW, "op_1"))["status"] == "RUNNING"
    assert workflows.running(NAME, "op_1") is True
    workflows.stop(NAME, "op_1")
    assert workflows.running(NAME, "op_1") is False


def test_unknown_workflow_raises_not_found(client):
    with pytest.raises(VendorNotFound):
        StepFunctionsWorkflows(client).start(WORKFLOW + "-nope", "op_1", {})


@pytest.mark.parametrize("code", ["TaskTimedOut", "TaskDoesNotExist", "InvalidToken"])
def test_wake_returns_false_for_missing_task_token(client, code: str):
    with Stubber(client) as stub:
        stub.add_client_error("send_task_success", code, "gone", 400)
        assert StepFunctionsWorkflows(client).succeed("token", {}) is False


def test_wake_sends_output_to_waiting_task(client):
    with Stubber(client) as stub:
        stub.add_response("send_task_success", {}, {"taskToken": "token", "output": '{"ready": true}'})
        assert StepFunctionsWorkflows(client).succeed("token", {"ready": True}) is True
        stub.assert_no_pending_responses()


def test_wake_raises_other_errors(client):
    with Stubber(client) as stub:
        stub.add_client_error("send_task_success", "ThrottlingException", "slow", 400)
        with pytest.raises(VendorThrottled):
            StepFunctionsWorkflows(client).succeed("token", {})


def test_memory_workflows_accept_task_token_once():
    workflows = MemoryWorkflows()
    workflows.waiting.add("token")
    assert workflows.succeed("token", {"a": 1}) is True
    assert workflows.succeed("token", {"a": 2}) is False
    assert workflows.answers == {"token": {"a": 1}}


# --- the bus ---------------------------------------------------------------------------------------------------------


def test_published_event_reaches_bus(cloud: None):
    events = boto3.client("events", region_name="us-east-1")
    queues = boto3.client("sqs", region_name="us-east-1")
    events.create_event_bus(Name="stockyard-test")
    url = queues.create_queue(QueueName="seen")["QueueUrl"]
    arn = queues.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    pattern = json.dumps({"source": ["stockyard"], "detail-type": ["Cluster"]})
    events.put_rule(Name="all", EventBusName="stockyard-test", EventPattern=pattern)
    events.put_targets(Rule="all", EventBusName="stockyard-test", Targets=[{"Id": "q", "Arn": arn}])
    EventBridgeBus(events, "stockyard-test").publish("Cluster", {"subject": "clu_1", "sequence": 3})
    message = json.loads(queues.receive_message(QueueUrl=url)["Messages"][0]["Body"])
    assert message["detail"] == {"subject": "clu_1", "sequence": 3}
    assert (message["source"], message["detail-type"]) == ("stockyard", "Cluster")


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("ThrottlingException", VendorThrottled),
        ("InternalFailure", VendorUnavailable),
        ("MalformedDetail", VendorRefused),
    ],
)
def test_refused_event_entry_is_raised(cloud: None, code: str, error: type[Exception]):
    events = boto3.client("events", region_name="us-east-1")
    with Stubber(events) as stub:
        entries = [{"ErrorCode": code, "ErrorMessage": "no"}]
        stub.add_response("put_events", {"FailedEntryCount": 1, "Entries": entries})
        with pytest.raises(error):
            EventBridgeBus(events, "stockyard-test").publish("Cluster", {})


def test_memory_bus_keeps_published_events():
    bus, detail = MemoryBus(), {"subject": "clu_1"}
    bus.publish("Cluster", detail)
    detail["subject"] = "changed"
    assert bus.published == [("Cluster", {"subject": "clu_1"})]


def test_many_events_are_published_in_one_call(cloud: None):
    events = boto3.client("events", region_name="us-east-1")
    sent = []
    with Stubber(events) as stub:
        stub.add_response("put_events", {"FailedEntryCount": 0, "Entries": [{"EventId": str(n)} for n in range(3)]})
        events.meta.events.register("provide-client-params.events.PutEvents", lambda params, **_: sent.append(params))
        EventBridgeBus(events, "stockyard-test").publish_all([("Cluster", {"n": n}) for n in range(3)])
    assert [json.loads(entry["Detail"]) for entry in sent[0]["Entries"]] == [{"n": 0}, {"n": 1}, {"n": 2}]
    bus = MemoryBus()
    bus.publish_all([("Cluster", {"n": 0}), ("NodeClaim", {"n": 1})])
    assert bus.published == [("Cluster", {"n": 0}), ("NodeClaim", {"n": 1})]
