"""The story of events, by boto3 alone: a tenant's account asks for a profile, a provider, a cluster, pools and nodes,
is told of each end by its own correlation id, and deletes it all. The examples are deployed and do their work: the
state machine makes a cluster and deploys into it without polling, and the pipe carries wishes from a queue."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from local.aws.accounts import ACME_ACCOUNT, OWN_ACCOUNT, REGION
from tests.harness.stories.event_examples import Deployed, deploy

if TYPE_CHECKING:
    from local.testing.serving import Served

pytestmark = pytest.mark.timeout(900)

BUS = f"arn:aws:events:{REGION}:{OWN_ACCOUNT}:event-bus/stockyard-dev"
TENANT_BUS = f"arn:aws:events:{REGION}:{ACME_ACCOUNT}:event-bus/default"
MANIFEST = "{apiVersion: v1, kind: ConfigMap, metadata: {name: hello, namespace: default}, data: {a: '1'}}"
PACK = {"layer": "addon", "name": "hello", "tag": "1", "manifests": [{"name": "hello", "content": MANIFEST}]}
SPEC = {"nodeTypes": [{"name": "box", "resources": {"cpu": "2", "memory": "4Gi"}, "usdPerHour": 0.1}]}
ENDS = ("RequestCompleted", "RequestFailed", "RequestRefused")


class Story:
    """A tenant's account that asks by events and hears answers in a queue. ``answers`` are those so far."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.aws: Callable[[str], Any] = partial(served.aws, account=ACME_ACCOUNT)
        self.answers: list[tuple[str, dict[str, Any]]] = []
        own = served.aws("events")
        pattern = {"source": ["stockyard"], "detail": {"account": [ACME_ACCOUNT]}}
        own.put_rule(Name="answers-acme", EventBusName="stockyard-dev", EventPattern=json.dumps(pattern))
        target = {"Id": "bus", "Arn": TENANT_BUS}
        own.put_targets(Rule="answers-acme", EventBusName="stockyard-dev", Targets=[target])
        self.queue = self.aws("sqs").create_queue(QueueName="answers")["QueueUrl"]
        self.aws("events").put_rule(Name="hear", EventPattern=json.dumps({"source": ["stockyard"]}))
        arn = f"arn:aws:sqs:{REGION}:{ACME_ACCOUNT}:answers"
        self.aws("events").put_targets(Rule="hear", Targets=[{"Id": "queue", "Arn": arn}])

    def ask(self, kind: str, correlation_id: str, **detail: Any) -> None:
        """Put a request on Stockyard's bus."""
        text = json.dumps({**detail, "correlation_id": correlation_id})
        entry = {"EventBusName": BUS, "Source": "stockyard.request", "DetailType": kind, "Detail": text}
        assert self.aws("events").put_events(Entries=[entry])["FailedEntryCount"] == 0

    def hear(self) -> None:
        """Take what has come into the queue."""
        sqs = self.aws("sqs")
        while messages := sqs.receive_message(QueueUrl=self.queue, MaxNumberOfMessages=10).get("Messages"):
            for message in messages:
                event = json.loads(message["Body"])
                self.answers.append((event["detail-type"], event["detail"]))
                sqs.delete_message(QueueUrl=self.queue, ReceiptHandle=message["ReceiptHandle"])

    def of(self, correlation_id: str) -> list[tuple[str, dict[str, Any]]]:
        """The answers to a request so far."""
        self.hear()
        return [answer for answer in self.answers if answer[1]["correlation_id"] == correlation_id]

    def end_of(self, correlation_id: str) -> tuple[str, dict[str, Any]]:
        """The end of a request, once it is told."""

        def look() -> Any:
            return next((answer for answer in self.of(correlation_id) if answer[0] in ENDS), None)

        kind, detail = self.served.wait(f"the end of {correlation_id}", look, 100)
        return kind, detail

    def done(self, kind: str, correlation_id: str, **detail: Any) -> dict[str, Any]:
        """Ask, and wait for the end, which has to be good."""
        self.ask(kind, correlation_id, **detail)
        answer, end = self.end_of(correlation_id)
        assert answer == "RequestCompleted", (answer, end)
        return end


@pytest.fixture(scope="module")
def story(served: Served) -> Story:
    return Story(served)


@pytest.fixture(scope="module")
def machines(story: Story) -> Deployed:
    return deploy(story.aws, ACME_ACCOUNT, "step-functions/cluster.yaml", StockyardBus=BUS)


def _execution(story: Story, arn: str) -> dict[str, Any]:
    """The execution once it has ended. The test looks again and again, the state machine does not."""
    states = story.aws("stepfunctions")

    def look() -> Any:
        execution = states.describe_execution(executionArn=arn)
        return None if execution["status"] == "RUNNING" else execution

    return dict(story.served.wait("the end of the execution", look, 100))


def test_a_state_machine_makes_a_cluster_and_deploys_into_it_without_polling(
    story: Story, machines: Deployed, body: Callable[..., dict[str, Any]]
) -> None:
    story.done("CreateClusterProfile", "profile", body={"name": "hello", "version": "1.0.0", "packs": [PACK]})
    states, machine = story.aws("stepfunctions"), machines.refs["MakeCluster"]
    wish = {"cluster": body(name="evented"), "profiles": [{"name": "hello"}]}
    arn = states.start_execution(stateMachineArn=machine, name="first", input=json.dumps(wish))["executionArn"]
    execution = _execution(story, arn)
    assert execution["status"] == "SUCCEEDED", execution.get("cause")
    output = json.loads(execution["output"])
    created, deployed = output["created"], output["deployed"]
    assert (created["status"], created["detail_type"], created["name"]) == ("succeeded", "CreateCluster", "evented")
    assert (deployed["subject"], deployed["detail_type"]) == (created["subject"], "ChangeCluster")
    profiles = story.served.call("GET", f"/v1/clusters/{created['subject']}/profiles").body
    assert [(pack["name"], pack["condition"]) for pack in profiles["packs"]] == [("hello", "Ready")]
    answers = story.of(created["correlation_id"])
    kinds = [kind for kind, _ in answers]
    assert kinds.count("RequestAccepted") == 1
    assert kinds.count("RequestProgressed") > 3
    assert {detail["operation_id"] for _, detail in answers} == {created["operation_id"]}
    # a second one of that name is refused, and the task fails with the problem
    arn = states.start_execution(stateMachineArn=machine, name="second", input=json.dumps(wish))["executionArn"]
    refused = _execution(story, arn)
    assert (refused["status"], refused["error"]) == ("FAILED", "ClusterNameInUse")
    assert json.loads(refused["cause"])["status"] == 409


def test_a_pipe_carries_wishes_from_a_queue_to_pools(story: Story) -> None:
    story.done("CreateNodeProvider", "provider", body={"name": "boxes", "kind": "simulated", "spec": SPEC})
    pool = {"name": "web", "quantity": 0, "provider": "boxes"}
    story.done("CreatePool", "pool", cluster="evented", body=pool)
    piped = deploy(story.aws, ACME_ACCOUNT, "pipes/nodes.yaml", StockyardBus=BUS)
    sqs = story.aws("sqs")

    def wish(**fields: Any) -> str:
        return str(sqs.send_message(QueueUrl=piped.refs["Wishes"], MessageBody=json.dumps(fields))["MessageId"])

    good = wish(cluster="evented", pool="web", nodes=1)
    for odd in ({"cluster": "evented", "pool": "web", "nodes": 21}, {"cluster": "evented", "nodes": 1}):
        wish(**odd)
    missing = wish(cluster="evented", pool="nowhere", nodes=1)
    assert piped.run_pipe() == 2, "of four wishes two are none"
    assert story.end_of(good)[0] == "RequestCompleted"
    kind, refusal = story.end_of(missing)
    assert (kind, refusal["problem"]["status"], refusal["account"]) == ("RequestRefused", 404, ACME_ACCOUNT)
    path = f"/v1/clusters/{story.end_of('pool')[1]['subject'].split('/')[0]}/pools/web"
    story.served.wait(
        "the node of the pool", lambda: story.served.call("GET", path).body["nodes"]["available"] == 1, 100
    )


def test_one_node_is_claimed_and_given_back_and_all_ends_by_events(story: Story) -> None:
    claimed = story.done("CreateNodeClaim", "claim", body={"name": "one", "cluster": "evented", "provider": "boxes"})
    assert claimed["name"] == "one"
    faults = {"name": "-", "kind": "simulated", "spec": {}, "price_per_cost_unit": "x"}
    story.ask("CreateNodeProvider", "faulty", body=faults, tenant="globex")
    kind, refusal = story.end_of("faulty")
    pointers = {fault["pointer"] for fault in refusal["problem"]["errors"]}
    assert (kind, pointers) == ("RequestRefused", {"/tenant", "/body/name", "/body/price_per_cost_unit"})
    story.ask("MakeCoffee", "coffee")
    assert story.end_of("coffee")[1]["problem"]["detail"] == "There is no request MakeCoffee."
    story.done("DeleteNodeClaim", "unclaim", claim="one")
    story.done("DeletePool", "unpool", cluster="evented", pool="web")
    story.done("DeleteCluster", "gone", cluster="evented")
    story.done("DeleteClusterProfile", "unprofile", profile="hello")
    story.done("DeleteNodeProvider", "unprovide", provider="boxes")
    clusters = story.served.call("GET", "/v1/clusters").body["items"]
    assert "evented" not in [cluster["name"] for cluster in clusters]
