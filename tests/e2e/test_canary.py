"""Secrets go in and never come out: canaries in every secret input are looked for wherever they could have leaked."""

from __future__ import annotations

import base64
import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from typer.testing import CliRunner

from local import places
from local.aws import ACME_ACCOUNT, OWN_ACCOUNT, REGION
from local.canaries import MARKS, Place, canary, forms, hits
from stockyard_client import Client
from stockyard_client.cli.app import app
from stockyard_client.cli.context import Context

if TYPE_CHECKING:
    from local.serving import Answer, Served

pytestmark = pytest.mark.timeout(1200)

OPENAPI = Path(__file__).resolve().parents[2] / "openapi.json"
BUS = "stockyard-dev"
SECRET_INPUTS = {"ClusterCreate.secret": "given client secret", "ReadyReport.kubeconfig": "kubeconfig"}
"""What the API's document marks as secret -> the canary that goes in there."""


@dataclass
class Sown:
    """The canaries, and everything that came back and is not there to show one of them."""

    canaries: dict[str, str] = field(default_factory=dict)
    outputs: list[Place] = field(default_factory=list)

    def put(self, name: str) -> str:
        """A new canary."""
        self.canaries[name] = canary()
        return self.canaries[name]


@pytest.fixture(scope="module")
def heard(served: Served) -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """What Stockyard has sent to its tenants so far, caught by a rule and a queue on its bus."""
    queue, events = served.aws("sqs"), served.aws("events")
    url = queue.create_queue(QueueName="canary-bus")["QueueUrl"]
    events.put_rule(Name="canary", EventBusName=BUS, EventPattern=json.dumps({"source": ["stockyard"]}))
    target = {"Id": "queue", "Arn": f"arn:aws:sqs:{REGION}:{OWN_ACCOUNT}:canary-bus"}
    assert events.put_targets(Rule="canary", EventBusName=BUS, Targets=[target])["FailedEntryCount"] == 0

    events_heard: list[dict[str, Any]] = []

    def look() -> list[dict[str, Any]]:
        while found := queue.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
            for message in found:
                events_heard.append(json.loads(message["Body"]))
                queue.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return events_heard

    yield look
    events.remove_targets(Rule="canary", EventBusName=BUS, Ids=["queue"])
    events.delete_rule(Name="canary", EventBusName=BUS)
    queue.delete_queue(QueueUrl=url)


@pytest.fixture(scope="module")
def sown(
    served: Served,
    body: Callable[..., dict[str, Any]],
    remove: Callable[[str], dict[str, Any]],
    heard: Callable[[], list[dict[str, Any]]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Sown:
    """A cluster's life and another's early end, a canary in each secret input, and refusals of requests with one."""
    sown = Sown()
    given = sown.put("given client secret")

    def call(method: str, path: str, document: Any = None, **more: Any) -> Answer:
        answer = served.call(method, path, document, **more)
        sown.outputs.append(Place("answer", f"of {method} {path}", f"{dict(answer.headers)}\n{answer.text}"))
        return answer

    key = {"Idempotency-Key": "canary"}
    first = call("POST", "/v1/clusters", body(name="canary", secret=given), headers=key)
    again = call("POST", "/v1/clusters", body(name="canary", secret=given), headers=key)
    assert (again.status, again.body) == (202, first.body)
    sown.outputs.append(Place("replay", "of POST /v1/clusters", f"{dict(again.headers)}\n{again.text}"))
    assert call("POST", "/v1/clusters?dry_run=true", body(name="canary-dry", secret=given)).status == 200
    second = _command_line(served, sown, body, tmp_path_factory.mktemp("canary"))
    _refusals(call, sown, body, first.body["id"])
    _event(served, body, sown.put("secret in an event"))
    assert served.operation(first.body["operation_id"])["status"] == "succeeded"
    sown.canaries["made client secret"] = _secret_of(served, second["id"])
    assert remove(second["id"])["status"] == "succeeded"
    assert _secret_of(served, first.body["id"]) == given
    token = served.client_token(first.body["client_id"], given)
    sown.canaries["kubeconfig"] = _reported(served, sown, first.body["id"], token)
    for path in _readable(first.body["id"]):
        assert call("GET", path).status == 200, path
    sown.canaries |= _standing(served) | {"machine's token": token.rsplit(".", 1)[1]}
    living = list(places.machines(served))
    assert living
    assert hits(sown.canaries, living) == []  # before the machines are forgotten
    assert remove(first.body["id"])["status"] == "succeeded"
    ended = {first.body["id"], second["id"]}
    served.wait("the last messages on the bus", lambda: ended <= _gone(heard()))
    sown.outputs += [Place("message", f"on the bus {event['id']}", json.dumps(event)) for event in heard()]
    return sown


def _reported(served: Served, sown: Sown, cluster_id: str, token: str) -> str:
    """The token in the kubeconfig that the machine has sent. A report that comes after it changes nothing."""
    one = f"/v1/clusters/{cluster_id}"
    before = served.call("GET", f"{one}/kubeconfig?static=true").body["kubeconfig"]
    config = yaml.safe_load(before)
    found = str(config["users"][0]["user"]["token"])
    for user, status in (
        ({"token": sown.put("late kubeconfig")}, 202),
        ({"exec": sown.put("refused kubeconfig")}, 422),
    ):
        config["users"][0]["user"] = user
        report = {"kubeconfig": yaml.safe_dump(config), "certificate_authority": "none"}
        answer = served.call("POST", f"{one}/ready", report, token=token)
        assert answer.status == status
        sown.outputs.append(Place("answer", f"of POST {one}/ready", f"{dict(answer.headers)}\n{answer.text}"))
    assert served.call("GET", f"{one}/kubeconfig?static=true").body["kubeconfig"] == before
    return found


def _gone(events: list[dict[str, Any]]) -> set[str]:
    """The clusters of which the bus has said that they are gone."""
    phase = {"before": "deleting", "after": None}
    return {event["detail"]["subject"] for event in events if event["detail"].get("phase") == phase}


def _secret_of(served: Served, cluster_id: str) -> str:
    return str(served.call("GET", f"/v1/clusters/{cluster_id}/client-secret").body["client_secret"])


def _standing(served: Served) -> dict[str, str]:
    """The installation's own secrets, and the keys of those who call it."""
    own = served.aws("secretsmanager")

    def stored(name: str) -> str:
        return str(own.get_secret_value(SecretId=f"stockyard/dev/{name}")["SecretString"])

    return {
        "admin's secret": json.loads(stored("identity-admin"))["client_secret"],
        "page key": stored("page-key"),
        "person's token": served.environment["STOCKYARD_TOKEN"].rsplit(".", 1)[1],
        "tenant's key": served.environment["AWS_SECRET_ACCESS_KEY"],
    }


def _refusals(call: Callable[..., Answer], sown: Sown, body: Callable[..., dict[str, Any]], cluster_id: str) -> None:
    refused, one = sown.put("refused secret"), f"/v1/clusters/{cluster_id}"
    assert call("POST", "/v1/clusters", body(name="canary-long", secret=refused * 2)).status == 422
    assert call("POST", "/v1/clusters", body(name="canary-list", secret=[refused])).status == 422
    assert call("POST", "/v1/clusters", body(name="canary-extra", secrets=refused)).status == 422
    assert call("POST", "/v1/clusters", body(name="canary", secret=refused)).status == 409
    other = call("POST", "/v1/clusters", body(name="canary", secret=refused), headers={"Idempotency-Key": "canary"})
    assert other.status == 422
    patch = call("PATCH", one, {"secret": refused}, headers={"If-Match": '"1"'})
    assert patch.status == 422
    report = {"kubeconfig": [refused], "certificate_authority": refused}
    assert call("POST", f"{one}/ready", report).status in (403, 404, 422)
    assert call("GET", one, token=sown.put("refused token")).status == 401
    signature = sown.put("refused proof")
    url = f"https://sts.{REGION}.amazonaws.com/?Action=GetCallerIdentity&X-Amz-Signature={signature[: -len(MARKS)]}"
    proof = {"method": "GET", "url": url, "headers": {"X-Amz-Security-Token": signature}}
    assert call("POST", f"{one}/bootstrap", proof).status in (401, 403, 404, 422)


def _event(served: Served, body: Callable[..., dict[str, Any]], secret: str) -> None:
    """The other way in: there a secret is refused."""
    entry = {
        "Source": "stockyard.request",
        "DetailType": "CreateCluster",
        "Detail": json.dumps({"body": body(name="canary-event", secret=secret)}),
        "EventBusName": BUS,
    }
    assert served.aws("events").put_events(Entries=[entry])["FailedEntryCount"] == 0


def _readable(cluster_id: str) -> list[str]:
    one = f"/v1/clusters/{cluster_id}"
    lists = ("clusters", "cloud-accounts", "operations", "events", "audit")
    return [
        one,
        f"{one}/tree",
        f"{one}/kubeconfig",
        "/v1/cloud-accounts/1",
        "/v1/cloud-accounts/1/template",
        "/v1/quotas",
        *(f"/v1/{name}?page_size=200" for name in lists),
    ]


# --- the SDK and the command line ------------------------------------------------------------------------------------


class _Everything(logging.Handler):
    """Keeps all that any library logs."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.name} {record.getMessage()} {record.exc_info or ''}")


def _command_line(served: Served, sown: Sown, body: Callable[..., dict[str, Any]], folder: Path) -> dict[str, Any]:
    """Make a cluster by it, whose secret is made for it, and let it say all it says; the cluster."""
    log, root = _Everything(), logging.getLogger()
    level = root.level
    root.addHandler(log)
    root.setLevel(logging.DEBUG)
    try:
        cluster = _commands(served, sown, body, folder)
        _sdk(served, sown, body)
    finally:
        root.removeHandler(log)
        root.setLevel(level)
    assert log.lines, "nothing was logged, so nothing was looked at"
    sown.outputs.append(Place("client's log", "at the level DEBUG", "\n".join(log.lines)))
    return cluster


def _commands(served: Served, sown: Sown, body: Callable[..., dict[str, Any]], folder: Path) -> dict[str, Any]:
    secret, token = sown.put("secret in a refused file"), sown.put("refused token of a command")

    def stockyard(*arguments: str, code: int = 0, document: Any = None, **environment: str) -> str:
        given = {"STOCKYARD_URL": served.environment["STOCKYARD_URL"], "HOME": str(folder), **environment}
        given.setdefault("STOCKYARD_TOKEN", served.environment["STOCKYARD_TOKEN"])
        text = document if isinstance(document, str) else json.dumps(document)
        result = CliRunner().invoke(app, ["-v", *arguments], input=text, obj=Context(environment=given))
        assert result.exit_code == code, result.output
        said = f"{result.stdout}\n{result.stderr}\n{result.exception!r}"
        sown.outputs.append(Place("command line", " ".join(arguments), said))
        return result.stdout

    create = ("cluster", "create", "-f", "-", "-o", "json")
    cluster: dict[str, Any] = json.loads(stockyard(*create, document=body(name="canary-made")))
    given = body(name="canary-file", secret=sown.canaries["given client secret"])
    stockyard(*create, "--dry-run", document=given)
    stockyard(*create, document=body(name="canary-made", secret=secret), code=5)
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


def _sdk(served: Served, sown: Sown, body: Callable[..., dict[str, Any]]) -> None:
    """Its objects and errors, as a traceback or a debugger shows them."""
    secret = sown.canaries["secret in a refused file"]
    with Client(served.environment["STOCKYARD_URL"], served.environment["STOCKYARD_TOKEN"]) as client:
        with pytest.raises(Exception, match="canary-made") as caught:
            client.clusters.create(body(name="canary-made", secret=secret))
        shown = [client, client.clusters, *client.clusters.list(), *client.accounts.list()]
        text = "\n".join(f"{one!r} {one}" for one in [*shown, caught.value, vars(caught.value)])
        sown.outputs.append(Place("SDK", "objects and errors", text))


# --- the tests -------------------------------------------------------------------------------------------------------

KINDS = (
    *("answer", "client's log", "command line", "description of secret", "execution", "history", "instance", "log"),
    *("message", "record", "replay", "SDK", "stream", "user data"),
)


def test_no_canary_is_found_anywhere(
    served: Served, sown: Sown, record_property: Callable[[str, object], None]
) -> None:
    looked = [*places.everywhere(served), *sown.outputs]
    found = hits(sown.canaries, looked)
    counts = Counter(place.kind for place in looked)
    figure = {
        "canaries": len(sown.canaries),
        "forms": sum(len(forms(value)) for value in sown.canaries.values()),
        "places": dict(sorted(counts.items())),
        "characters": sum(len(place.text) for place in looked),
        "hits": len(found),
    }
    record_property("figure:canary", figure)
    assert found == []
    assert set(counts) == set(KINDS), "something was not looked at"
    names = " ".join(place.name for place in looked)
    for name in (
        "stockyard-dev-clusters.log",
        "T#acme#Idempotency",
        "T#acme#Event",
        "T#acme#AuditRecord",
        "on the bus",
    ):
        assert name in names, f"not looked at: {name}"


def test_every_secret_input_has_a_canary(sown: Sown) -> None:
    schemas = json.loads(OPENAPI.read_text(encoding="utf-8"))["components"]["schemas"]
    marked = {
        f"{schema}.{name}"
        for schema, body in schemas.items()
        for name, one in body.get("properties", {}).items()
        if any(part.get("writeOnly") or part.get("format") == "password" for part in (one, *one.get("anyOf", ())))
    }
    assert marked == set(SECRET_INPUTS)
    assert set(SECRET_INPUTS.values()) <= set(sown.canaries)


FIXED = f"abcdefghijKLMNOPQRST{MARKS}"


@pytest.mark.parametrize("written", sorted(forms(FIXED)))
def test_each_form_of_a_secret_is_recognised(written: str) -> None:
    place = [Place("log", "there", f"before {written} after")]
    assert hits({"it": FIXED}, place) == ["it in log there"]
    assert hits({"it": canary()}, place) == []


@pytest.mark.parametrize("before", ["", "a", "ab", "abc"])
def test_a_secret_inside_an_encoded_document_is_recognised(before: str) -> None:
    value = canary()
    once = base64.b64encode(f"{before}{json.dumps({'secret': value})} and more".encode())
    twice = base64.b64encode(before.encode() + once).decode()
    for text in (once.decode(), twice, value[:20]):
        assert hits({"it": value}, [Place("log", "there", text)]) == ["it in log there"]


@pytest.fixture
def planted(served: Served) -> Iterator[str]:
    """A secret that was leaked on purpose wherever something is written."""
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


def test_a_deliberate_leak_is_caught(served: Served, sown: Sown, planted: str) -> None:
    places_of_leak = {line.removeprefix("it in ") for line in hits({"it": planted}, places.everywhere(served))}
    for wanted in (
        "log planted.log",
        "record T#nobody#Planted 1",
        "stream ",
        "message canary-bus ",
        "execution planted",
    ):
        assert any(place.startswith(wanted) for place in places_of_leak), wanted
    for wanted in ("history planted", "description of secret planted", "user data i-"):
        assert any(place.startswith(wanted) for place in places_of_leak), wanted
    leak = [Place("answer", "of GET /v1/clusters", json.dumps({"secret": sown.canaries["given client secret"]}))]
    assert hits(sown.canaries, leak) == ["given client secret in answer of GET /v1/clusters"]
