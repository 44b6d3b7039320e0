"""Secrets go in and never come out: every secret input gets a canary, and every place is searched for it."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import stamina.instrumentation
import yaml
from typer.testing import CliRunner

from local.aws.accounts import ACME_ACCOUNT, OWN_ACCOUNT, REGION
from local.testing.serving import serving
from stockyard_client import Client
from stockyard_client.cli.app import app
from stockyard_client.cli.context import Context
from tests.harness import outputs
from tests.harness.canaries import Output, canary, disk_key_hits, forms, hits
from tests.harness.canary_requests import (
    SECRET_INPUTS,
    CanaryRun,
    cloud_account,
    cluster_on_cudo,
    refusals,
    sealing_keys,
    searched_start_script,
)

if TYPE_CHECKING:
    from local.testing.serving import Answer, Served

pytestmark = pytest.mark.timeout(1200)

OPENAPI = Path(__file__).resolve().parents[2] / "openapi.json"
BUS = "stockyard-dev"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A local cloud of its own: all that it has written is searched, and other tests write nine times as much."""
    yield from serving(tmp_path_factory.mktemp("canary-cloud") / "home", "--no-limits")


@pytest.fixture(scope="module")
def bus_events(served: Served) -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """Reads the events that Stockyard has sent to its tenants so far, by a rule and a queue on its bus."""
    queue, events = served.aws("sqs"), served.aws("events")
    url = queue.create_queue(QueueName="canary-bus")["QueueUrl"]
    events.put_rule(Name="canary", EventBusName=BUS, EventPattern=json.dumps({"source": ["stockyard"]}))
    target = {"Id": "queue", "Arn": f"arn:aws:sqs:{REGION}:{OWN_ACCOUNT}:canary-bus"}
    assert events.put_targets(Rule="canary", EventBusName=BUS, Targets=[target])["FailedEntryCount"] == 0

    received: list[dict[str, Any]] = []

    def look() -> list[dict[str, Any]]:
        while messages := queue.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
            for message in messages:
                received.append(json.loads(message["Body"]))
                queue.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return received

    yield look
    events.remove_targets(Rule="canary", EventBusName=BUS, Ids=["queue"])
    events.delete_rule(Name="canary", EventBusName=BUS)
    queue.delete_queue(QueueUrl=url)


@pytest.fixture(scope="module")
def canary_run(
    served: Served,
    body: Callable[..., dict[str, Any]],
    remove: Callable[[str], dict[str, Any]],
    bus_events: Callable[[], list[dict[str, Any]]],
    tmp_path_factory: pytest.TempPathFactory,
) -> CanaryRun:
    """Creates and deletes two clusters with a canary in each secret input, and sends requests that are refused."""
    canary_run = CanaryRun()
    given_secret = canary_run.new_canary("given client secret")

    def call(method: str, path: str, document: Any = None, **more: Any) -> Answer:
        answer = served.call(method, path, document, **more)
        canary_run.outputs.append(Output("answer", f"of {method} {path}", f"{dict(answer.headers)}\n{answer.text}"))
        return answer

    key = {"Idempotency-Key": "canary"}
    on_cudo = cluster_on_cudo(served, call, canary_run)
    first = call("POST", "/v1/clusters", body(name="canary", secret=given_secret), headers=key)
    again = call("POST", "/v1/clusters", body(name="canary", secret=given_secret), headers=key)
    assert (again.status, again.body) == (202, first.body)
    canary_run.outputs.append(Output("replay", "of POST /v1/clusters", f"{dict(again.headers)}\n{again.text}"))
    assert call("POST", "/v1/clusters?dry_run=true", body(name="canary-dry", secret=given_secret)).status == 200
    second = _command_line(served, canary_run, body, tmp_path_factory.mktemp("canary"))
    refusals(call, canary_run, body, first.body["id"])
    cloud_account(call, canary_run)
    _event(served, body, canary_run.new_canary("secret in an event"))
    assert served.operation(first.body["operation_id"])["status"] == "succeeded"
    canary_run.canaries["made client secret"] = _secret_of(served, second["id"])
    assert remove(second["id"])["status"] == "succeeded"
    assert _secret_of(served, first.body["id"]) == given_secret
    token = served.client_token(first.body["client_id"], given_secret)
    canary_run.canaries["kubeconfig"] = _reported(served, canary_run, first.body["id"], token)
    for path in _readable(first.body["id"]):
        assert call("GET", path).status == 200, path
    canary_run.canaries |= _installation_secrets(served) | {"machine's token": token.rsplit(".", 1)[1]}
    sealing_keys(canary_run, {"EC2": first.body["id"], "Cudo": on_cudo["id"]})
    assert served.operation(on_cudo["operation_id"])["status"] == "succeeded"
    for path in (f"/v1/clusters/{on_cudo['id']}", f"/v1/operations/{on_cudo['operation_id']}"):
        assert call("GET", path).status == 200, path
    living = list(outputs.machines(served))
    assert living
    assert hits(canary_run.canaries, living) == []  # Before the machines disappear.
    searched_start_script(served, canary_run, on_cudo["id"])
    leaving = call("DELETE", f"/v1/clusters/{on_cudo['id']}").body["id"]
    assert remove(first.body["id"])["status"] == "succeeded"
    assert served.operation(leaving)["status"] == "succeeded"
    deleted_ids = {first.body["id"], second["id"], on_cudo["id"]}
    served.wait("the last messages on the bus", lambda: deleted_ids <= _deleted_clusters(bus_events()))
    canary_run.outputs += [Output("message", f"on the bus {event['id']}", json.dumps(event)) for event in bus_events()]
    return canary_run


def _reported(served: Served, canary_run: CanaryRun, cluster_id: str, token: str) -> str:
    """The token in the kubeconfig that the machine has reported. Checks that later reports change nothing."""
    cluster_path = f"/v1/clusters/{cluster_id}"
    before = served.call("GET", f"{cluster_path}/kubeconfig?static=true").body["kubeconfig"]
    config = yaml.safe_load(before)
    reported_token = str(config["users"][0]["user"]["token"])
    for user, status in (
        ({"token": canary_run.new_canary("late kubeconfig")}, 202),
        ({"exec": canary_run.new_canary("refused kubeconfig")}, 422),
    ):
        config["users"][0]["user"] = user
        report = {"kubeconfig": yaml.safe_dump(config), "certificate_authority": "none"}
        answer = served.call("POST", f"{cluster_path}/ready", report, token=token)
        assert answer.status == status
        canary_run.outputs.append(
            Output("answer", f"of POST {cluster_path}/ready", f"{dict(answer.headers)}\n{answer.text}")
        )
    assert served.call("GET", f"{cluster_path}/kubeconfig?static=true").body["kubeconfig"] == before
    return reported_token


def _deleted_clusters(events: list[dict[str, Any]]) -> set[str]:
    """The clusters whose deletion was announced on the bus."""
    phase = {"before": "deleting", "after": None}
    return {event["detail"]["subject"] for event in events if event["detail"].get("phase") == phase}


def _secret_of(served: Served, cluster_id: str) -> str:
    return str(served.call("GET", f"/v1/clusters/{cluster_id}/client-secret").body["client_secret"])


def _installation_secrets(served: Served) -> dict[str, str]:
    """The installation's own secrets, and the keys of its callers."""
    own = served.aws("secretsmanager")

    def stored(name: str) -> str:
        return str(own.get_secret_value(SecretId=f"stockyard/dev/{name}")["SecretString"])

    return {
        "admin's secret": json.loads(stored("identity-admin"))["client_secret"],
        "page key": stored("page-key"),
        "key of machines' tokens": stored("machine-key"),
        "person's token": served.environment["STOCKYARD_TOKEN"].rsplit(".", 1)[1],
        "tenant's key": served.environment["AWS_SECRET_ACCESS_KEY"],
    }


def _event(served: Served, body: Callable[..., dict[str, Any]], secret: str) -> None:
    """Sends a request with a secret as an event. It is refused."""
    entry = {
        "Source": "stockyard.request",
        "DetailType": "CreateCluster",
        "Detail": json.dumps({"body": body(name="canary-event", secret=secret)}),
        "EventBusName": BUS,
    }
    assert served.aws("events").put_events(Entries=[entry])["FailedEntryCount"] == 0


def _readable(cluster_id: str) -> list[str]:
    cluster_path = f"/v1/clusters/{cluster_id}"
    lists = ("clusters", "cloud-accounts", "operations", "events", "audit")
    return [
        cluster_path,
        f"{cluster_path}/tree",
        f"{cluster_path}/kubeconfig",
        "/v1/cloud-accounts/1",
        "/v1/cloud-accounts/1/template",
        "/v1/quotas",
        *(f"/v1/{name}?page_size=200" for name in lists),
    ]


# --- the SDK and the command line ------------------------------------------------------------------------------------


class _AllLogs(logging.Handler):
    """Keeps every log line of every library."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.name} {record.getMessage()} {record.exc_info or ''}")


def _command_line(
    served: Served, canary_run: CanaryRun, body: Callable[..., dict[str, Any]], folder: Path
) -> dict[str, Any]:
    """Creates a cluster with a generated secret by the command line, keeps output and logs, returns the cluster."""
    log, root = _AllLogs(), logging.getLogger()
    level = root.level
    root.addHandler(log)
    root.setLevel(logging.DEBUG)
    try:
        cluster = _commands(served, canary_run, body, folder)
        _sdk(served, canary_run, body)
    finally:
        root.removeHandler(log)
        root.setLevel(level)
    assert log.lines, "nothing was logged, so nothing was searched"
    canary_run.outputs.append(Output("client's log", "at the level DEBUG", "\n".join(log.lines)))
    return cluster


def _commands(
    served: Served, canary_run: CanaryRun, body: Callable[..., dict[str, Any]], folder: Path
) -> dict[str, Any]:
    secret, token = (
        canary_run.new_canary("secret in a refused file"),
        canary_run.new_canary("refused token of a command"),
    )

    def stockyard(*arguments: str, code: int = 0, document: Any = None, **environment: str) -> str:
        variables = {"STOCKYARD_URL": served.environment["STOCKYARD_URL"], "HOME": str(folder), **environment}
        variables.setdefault("STOCKYARD_TOKEN", served.environment["STOCKYARD_TOKEN"])
        text = document if isinstance(document, str) else json.dumps(document)
        result = CliRunner().invoke(app, ["-v", *arguments], input=text, obj=Context(environment=variables))
        # A command leaves its hook, which would write to the stream of that command, in the process.
        stamina.instrumentation.set_on_retry_hooks(None)
        assert result.exit_code == code, result.output
        output = f"{result.stdout}\n{result.stderr}\n{result.exception!r}"
        canary_run.outputs.append(Output("command line", " ".join(arguments), output))
        return result.stdout

    create = ("cluster", "create", "-f", "-", "-o", "json")
    cluster: dict[str, Any] = json.loads(stockyard(*create, document=body(name="canary-made")))
    with_secret = body(name="canary-file", secret=canary_run.canaries["given client secret"])
    stockyard(*create, "--dry-run", document=with_secret)
    stockyard(*create, document=body(name="canary-made", secret=secret) | {"description": "other"}, code=5)
    stockyard(*create, document=body(name="canary-file", secret=secret * 2), code=2)
    stockyard(*create, document=f"{{name: x, secret: [{secret}", code=2)
    stockyard("cluster", "get", "canary-made", code=4, STOCKYARD_TOKEN=token)
    stockyard("cluster", "get", "canary-made", code=1, STOCKYARD_URL="http://127.0.0.1:1", STOCKYARD_TOKEN=token)
    for form in ("json", "yaml", "wide"):
        stockyard("cluster", "get", "canary-made", "-o", form)
        stockyard("cluster", "list", "-o", form)
    for command in ("describe", "events"):
        stockyard("cluster", command, "canary-made", "-o", "json")
    stockyard("cluster", "delete", "canary-made", "--dry-run", "-o", "json")
    stockyard("operation", "get", cluster["operation_id"], "-o", "json")
    stockyard("account", "list", "-o", "json")
    stockyard("account", "template", "1")
    return cluster


def _sdk(served: Served, canary_run: CanaryRun, body: Callable[..., dict[str, Any]]) -> None:
    """Keeps the SDK's objects and errors as a traceback or a debugger would print them."""
    secret = canary_run.canaries["secret in a refused file"]
    with Client(served.environment["STOCKYARD_URL"], served.environment["STOCKYARD_TOKEN"]) as client:
        with pytest.raises(Exception, match="canary-made") as caught:
            client.clusters.create(body(name="canary-made", secret=secret))
        objects = [client, client.clusters, *client.clusters.list(), *client.accounts.list()]
        text = "\n".join(f"{printed!r} {printed}" for printed in [*objects, caught.value, vars(caught.value)])
        canary_run.outputs.append(Output("SDK", "objects and errors", text))


# --- the tests -------------------------------------------------------------------------------------------------------

KINDS = (
    *("answer", "client's log", "command line", "description of secret", "execution", "history", "instance", "log"),
    *("message", "record", "replay", "SDK", "start script", "stream", "user data"),
)


def test_no_canary_leaks_anywhere(
    served: Served, canary_run: CanaryRun, record_property: Callable[[str, object], None]
) -> None:
    searched = [*outputs.everywhere(served), *canary_run.outputs]
    leaks = hits(canary_run.canaries, searched)
    counts = Counter(output.kind for output in searched)
    figure = {
        "canaries": len(canary_run.canaries),
        "forms": sum(len(forms(value)) for value in canary_run.canaries.values()),
        "places": dict(sorted(counts.items())),
        "characters": sum(len(output.text) for output in searched),
        "hits": len(leaks),
    }
    record_property("figure:canary", figure)
    assert leaks == []
    assert disk_key_hits(canary_run.disk_key_digest, searched) == []
    assert set(counts) == set(KINDS), "a kind of place was not searched"
    names = " ".join(output.name for output in searched)
    for name in (
        "stockyard-dev-clusters.log",
        "T#acme#Idempotency",
        "T#acme#Event",
        "T#acme#AuditRecord",
        "on the bus",
    ):
        assert name in names, f"not searched: {name}"


def test_every_secret_input_has_a_canary(canary_run: CanaryRun) -> None:
    schemas = json.loads(OPENAPI.read_text(encoding="utf-8"))["components"]["schemas"]
    secret_fields = {
        f"{schema}.{name}"
        for schema, body in schemas.items()
        for name, schema_of_field in body.get("properties", {}).items()
        if any(
            part.get("writeOnly") or part.get("format") == "password"
            for part in (schema_of_field, *schema_of_field.get("anyOf", ()))
        )
    }
    assert secret_fields == set(SECRET_INPUTS)
    assert set(SECRET_INPUTS.values()) <= set(canary_run.canaries)


@pytest.fixture
def leaked_canary(served: Served) -> Iterator[str]:
    """A canary that is leaked on purpose into every kind of place."""
    leak = canary()
    log = served.home / "logs" / "planted.log"
    log.write_text(json.dumps({"message": f"secret is {leak}"}), encoding="utf-8")
    table, key = served.aws("dynamodb"), {"pk": {"S": "T#nobody#Planted"}, "sk": {"S": "1"}}
    name = table.list_tables()["TableNames"][0]
    encoded = base64.urlsafe_b64encode(f"x{leak}".encode()).decode()
    table.put_item(TableName=name, Item={**key, "text": {"S": encoded}})
    bus = {"Source": "stockyard", "DetailType": "Planted", "Detail": json.dumps({"leak": leak}), "EventBusName": BUS}
    served.aws("events").put_events(Entries=[bus])
    secret = served.aws("secretsmanager")
    secret.create_secret(Name="planted", SecretString="nothing", Description=leak)
    workflows = served.aws("stepfunctions")
    document = {"StartAt": "end", "States": {"end": {"Type": "Succeed"}}}
    role = f"arn:aws:iam::{OWN_ACCOUNT}:role/planted"
    machine = workflows.create_state_machine(name="planted", definition=json.dumps(document), roleArn=role)
    arn = machine["stateMachineArn"]
    workflows.start_execution(stateMachineArn=arn, name="planted", input=json.dumps({"leak": leak}))
    ec2 = served.aws("ec2", ACME_ACCOUNT)
    image = ec2.describe_images()["Images"][0]["ImageId"]
    instance = ec2.run_instances(ImageId=image, MinCount=1, MaxCount=1, UserData=f"#!/bin/sh\necho '{leak}'")
    yield leak
    ec2.terminate_instances(InstanceIds=[instance["Instances"][0]["InstanceId"]])
    workflows.delete_state_machine(stateMachineArn=arn)
    secret.delete_secret(SecretId="planted", ForceDeleteWithoutRecovery=True)
    table.delete_item(TableName=name, Key=key)
    log.unlink()


def test_a_deliberate_leak_is_detected(served: Served, canary_run: CanaryRun, leaked_canary: str) -> None:
    outputs_of_leak = {line.removeprefix("it in ") for line in hits({"it": leaked_canary}, outputs.everywhere(served))}
    prefixes = ("log planted.log", "record T#nobody#Planted 1", "stream ", "message canary-bus ", "execution planted")
    for prefix in (*prefixes, "history planted", "description of secret planted", "user data i-"):
        assert any(output.startswith(prefix) for output in outputs_of_leak), prefix
    key = base64.b64encode(bytes(range(64))).decode()
    outputs_with_key = [Output("log", "of a machine", f"luksFormat {text}") for text in (key, json.dumps({"key": key}))]
    assert len(disk_key_hits(hashlib.sha256(key.encode()).hexdigest(), outputs_with_key)) == 2
    leak = [Output("answer", "of GET /v1/clusters", json.dumps({"secret": canary_run.canaries["given client secret"]}))]
    assert hits(canary_run.canaries, leak) == ["given client secret in answer of GET /v1/clusters"]
