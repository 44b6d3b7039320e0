"""All places where a secret could leak: every text that a served local cloud wrote, stored or sent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from local.aws.accounts import ACME_ACCOUNT
from local.machines.programs import cloud_config, script_files
from local.machines.virtual_machines import START_SCRIPT
from tests.harness.canaries import Output

if TYPE_CHECKING:
    from local.testing.serving import Served


def everywhere(served: Served) -> Iterator[Output]:
    """All places, one after the other. Reading them changes nothing."""
    yield from files(served)
    yield from records(served)
    yield from executions(served)
    yield from messages(served)
    yield from machines(served)
    yield from start_scripts(served)
    for secret in served.aws("secretsmanager").list_secrets()["SecretList"]:
        yield Output("description of secret", secret["Name"], _text(secret))


def files(served: Served) -> Iterator[Output]:
    """The logs of all functions and machines, and the output and recorded calls of the local cloud itself."""
    paths = [*sorted((served.home / "logs").iterdir()), served.home / "calls.jsonl", served.home / "serve.out"]
    for path in paths:
        yield Output("log", path.name, path.read_text(encoding="utf-8", errors="replace"))


def records(served: Served) -> Iterator[Output]:
    """All items of all tables, and all records of their streams, which still have deleted items."""
    client = served.aws("dynamodb")
    for table in client.list_tables()["TableNames"]:
        for page in client.get_paginator("scan").paginate(TableName=table):
            for item in page["Items"]:
                yield Output("record", f"{item['pk']['S']} {item['sk']['S']}", _text(item))
    streams = served.aws("dynamodbstreams")
    for stream in streams.list_streams()["Streams"]:
        for shard in streams.describe_stream(StreamArn=stream["StreamArn"])["StreamDescription"]["Shards"]:
            shard_position = {"StreamArn": stream["StreamArn"], "ShardId": shard["ShardId"]}
            start = streams.get_shard_iterator(**shard_position, ShardIteratorType="TRIM_HORIZON")["ShardIterator"]
            while start:
                page = streams.get_records(ShardIterator=start)
                if not page["Records"]:
                    break
                yield Output("stream", stream["TableName"], _text(page["Records"]))
                start = page.get("NextShardIterator")


def executions(served: Served) -> Iterator[Output]:
    """Inputs, outputs and histories of all executions."""
    client = served.aws("stepfunctions")
    for machine in client.list_state_machines()["stateMachines"]:
        executions_of_machine = client.list_executions(stateMachineArn=machine["stateMachineArn"])["executions"]
        for execution in executions_of_machine:
            arn = execution["executionArn"]
            yield Output("execution", execution["name"], _text(client.describe_execution(executionArn=arn)))
            for page in client.get_paginator("get_execution_history").paginate(executionArn=arn):
                yield Output("history", execution["name"], _text(page["events"]))


def messages(served: Served) -> Iterator[Output]:
    """The messages in all queues: those that functions could not handle, and those that a test's rule received."""
    client = served.aws("sqs")
    for url in client.list_queues().get("QueueUrls", []):
        handles = []
        while waiting := client.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=300).get(
            "Messages", []
        ):
            for message in waiting:
                handles.append(message["ReceiptHandle"])
                yield Output("message", f"{url.rsplit('/', 1)[-1]} {message['MessageId']}", message["Body"])
        for handle in handles:  # The next reader sees the messages again.
            client.change_message_visibility(QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=0)


def machines(served: Served) -> Iterator[Output]:
    """Descriptions and user data of the tenant's instances, also of terminated instances."""
    client = served.aws("ec2", ACME_ACCOUNT)
    for reservation in client.describe_instances()["Reservations"]:
        for instance in reservation["Instances"]:
            name = instance["InstanceId"]
            yield Output("instance", name, _text(instance))
            answer = client.describe_instance_attribute(InstanceId=name, Attribute="userData")
            encoded = answer.get("UserData", {}).get("Value", "")
            yield Output("user data", name, cloud_config(encoded))


def start_scripts(served: Served) -> Iterator[Output]:
    """The start scripts of the tenant's machines on Cudo that are there, with what is packed in them."""
    for path in sorted((served.home / "machines").glob(f"*/{START_SCRIPT}")):
        with suppress(FileNotFoundError):  # The machine has just ended.
            script = path.read_text(encoding="utf-8")
            yield Output("start script", path.parent.name, "\n".join([script, *script_files(script).values()]))


def _text(value: Any) -> str:
    return json.dumps(value, default=str)
