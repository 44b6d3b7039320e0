"""Things that AWS forgets go here too: read stream records, old executions, references to whatever moto made."""

from __future__ import annotations

import gc
import json
import threading
import weakref
from typing import Any

import boto3
from moto import mock_aws
from moto.core.model_instances import reset_model_data
from moto.dynamodb.models import dynamodb_backends
from moto.dynamodb.models.dynamo_type import Item
from moto.stepfunctions.parser.models import stepfunctions_parser_backends

from local.aws.accounts import OWN_ACCOUNT, REGION
from local.aws.corrections import retention
from local.aws.corrections.retention import forgotten_executions, untracked_models, untracked_threads
from local.aws.server import Aws
from tests.harness.worlds.inprocess import credentials, workflow_world

PASS = json.dumps({"StartAt": "Only", "States": {"Only": {"Type": "Pass", "End": True}}})


def item_survives(*, untracked: bool) -> bool:
    """Whether moto still knows an item that nobody else knows."""
    reset_model_data()
    if untracked:
        with untracked_models():
            item = Item({"S": "a"}, None, {})
    else:
        item = Item({"S": "a"}, None, {})
    reference = weakref.ref(item)
    del item
    gc.collect()
    return reference() is not None


def table_with_stream() -> tuple[Any, str]:
    """A client of DynamoDB, and the ARN of the stream of its table ``t``."""
    table: Any = boto3.client("dynamodb", REGION)
    description = table.create_table(
        TableName="t",
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    )["TableDescription"]
    return table, str(description["LatestStreamArn"])


def test_moto_knows_no_more_what_nobody_has() -> None:
    assert item_survives(untracked=False), "moto forgets it by itself now"
    assert not item_survives(untracked=True)
    reset_model_data()


def test_read_records_go_and_numbers_go_on(monkeypatch: Any) -> None:
    monkeypatch.setattr(retention, "RECORDS", 20)
    with mock_aws(), credentials(OWN_ACCOUNT):
        table, arn = table_with_stream()
        aws = Aws("", threading.RLock(), threading.Event())
        first, second = aws.stream(OWN_ACCOUNT, arn), aws.stream(OWN_ACCOUNT, arn)
        shard = dynamodb_backends[OWN_ACCOUNT][REGION].tables["t"].stream_shard
        numbers: list[int] = []
        for number in range(100):
            table.put_item(TableName="t", Item={"pk": {"S": str(number)}})
            (record,) = first(number, 1000)
            numbers.append(int(record["dynamodb"]["SequenceNumber"]))
        assert len(shard.items) == 100, "the second has read nothing yet"
        assert [record["dynamodb"]["Keys"]["pk"]["S"] for record in second(0, 1000)] == [str(n) for n in range(100)]
        assert list(second(100, 1000)) == []
        assert len(shard.items) == 100 - (99 - 20), "the first was asked from 99 on"
        assert [record["dynamodb"]["Keys"]["pk"]["S"] for record in first(99, 1000)] == ["99"]
        table.put_item(TableName="t", Item={"pk": {"S": "100"}})
        (record,) = second(100, 1000)
        assert int(record["dynamodb"]["SequenceNumber"]) == numbers[-1] + 1
        assert numbers == list(range(numbers[0], numbers[0] + 100))


def test_old_executions_go_and_running_ones_stay(monkeypatch: Any) -> None:
    monkeypatch.setattr(retention, "EXECUTIONS", 3)
    waiting = json.dumps({"StartAt": "Wait", "States": {"Wait": {"Type": "Wait", "Seconds": 600, "End": True}}})
    with forgotten_executions(), workflow_world({}, scale=1.0) as world:
        passing = world.create("pass", PASS)
        arns = []
        for number in range(9):
            arns.append(world.start(passing, f"n{number}", {}))
            world.wait(arns[-1])
        (machine,) = stepfunctions_parser_backends[OWN_ACCOUNT][REGION].state_machines
        assert len(machine.executions) <= 6
        assert world.wait(arns[-1]).status == "SUCCEEDED"
        sleeper = world.create("wait", waiting)
        for number in range(9):
            world.start(sleeper, f"n{number}", {})
        assert len(world.sfn.list_executions(stateMachineArn=sleeper)["executions"]) == 9


def test_what_a_cloud_remembers_of_its_work_does_not_grow(monkeypatch: Any) -> None:
    """Each round writes and removes an item and runs a workflow. Threads alone would leave 30 objects a round."""
    monkeypatch.setattr(retention, "RECORDS", 20)
    monkeypatch.setattr(retention, "EXECUTIONS", 5)
    bounds = untracked_models(), untracked_threads(), forgotten_executions()
    with bounds[0], bounds[1], bounds[2], workflow_world({}, scale=1.0) as world:
        table, stream_arn = table_with_stream()
        read = Aws("", threading.RLock(), threading.Event()).stream(OWN_ACCOUNT, stream_arn)
        workflow = world.create("pass", PASS)

        def work(rounds: range) -> int:
            for number in rounds:
                table.put_item(TableName="t", Item={"pk": {"S": "claim"}, "note": {"S": "n" * 100}})
                table.delete_item(TableName="t", Key={"pk": {"S": "claim"}})
                world.wait(world.start(workflow, f"n{number}", {}))
                read(2 * number, 1000)
            gc.collect()
            return len(gc.get_objects())

        before = work(range(40))
        assert (work(range(40, 100)) - before) / 60 < 10, "objects a round"
