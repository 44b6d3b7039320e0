"""Stacks against the served local cloud: by HTTP, with a token that a client of its realm gets by its secret, which
stands in Secrets Manager."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from local.aws.accounts import ACME_ACCOUNT
from local.cloudformation import Provider, Runner, StackFailed
from local.cloudformation.timeline import Timeline
from stockyard_stack_resources.api import Api, Login
from stockyard_stack_resources.handler import Handler
from stockyard_stack_resources.life import Life
from stockyard_stack_resources.proofs import by_secret
from stockyard_stack_resources.stack import looking
from tests.constructs.documents import yard
from tests.harness.stacks.rig import template
from tests.harness.stories.programs import add_program

if TYPE_CHECKING:
    from local.testing.serving import Served

pytestmark = pytest.mark.timeout(1200)
NAME = "platform-pipeline"


@pytest.fixture(scope="module")
def secret(served: Served) -> str:
    """Secret of the pipeline's client in the realm."""
    return add_program(served, NAME, ("stockyard-operator", "stockyard-admin"))


class CloudFormation:
    """A client of boto3 for the runner."""

    def __init__(self) -> None:
        self.runner: Runner | None = None
        self.exceptions = type("exceptions", (), {"ClientError": ClientError})

    def describe_stack_resource(self, **arguments: str) -> dict[str, Any]:
        assert self.runner is not None
        return self.runner.describe_stack_resource(**arguments)


def slowly(seconds: float) -> None:
    """Stockyard works while twenty times as long passes for the stack."""
    time.sleep(min(seconds, 20) / 20)


def region(served: Served, secret: str, passed: Callable[[float], None] = lambda _: None) -> Runner:
    """A runner whose handler calls the served API, as it does in a Lambda function."""
    timeline, client = Timeline(moment=datetime.now(UTC), passed=passed), CloudFormation()
    manager = served.aws("secretsmanager", ACME_ACCOUNT)
    text = json.dumps({"client_id": NAME, "client_secret": secret})
    arn = manager.create_secret(Name=f"stacks-{secrets.token_hex(4)}", SecretString=text)["ARN"]
    login = Login(served.issuer, by_secret(lambda of: str(manager.get_secret_value(SecretId=of)["SecretString"]), arn))
    api = Api(served.environment["STOCKYARD_URL"], login)
    handler = Handler(Life(api, str, timeline.now), looking(client), timedelta(minutes=55), timeline.now)
    client.runner = Runner(Provider(handler.on_event, handler.is_complete, timeline), timeline)
    return client.runner


def test_a_stack_lives_by_http_and_the_login_of_a_client(served: Served, secret: str) -> None:
    lab = {"kind": "simulated", "spec": {"nodeTypes": [{"name": "small", "resources": {"cpu": "4", "memory": "8Gi"}}]}}
    profile = {"version": "1.0.0", "packs": [{"layer": "k8s", "name": "kubernetes", "tag": "1.34"}]}
    resources = template(Lab=("NodeProvider", lab), Base=("ClusterProfile", profile))
    changed = template(Lab=("NodeProvider", {**lab, "display_name": "A lab"}), Base=("ClusterProfile", profile))
    runner = region(served, secret)
    stack = runner.create("served", resources)
    name, base = (stack.resources[logical].data["Name"] for logical in ("Lab", "Base"))
    provider = served.call("GET", f"/v1/node-providers/{name}").body
    assert provider["annotations"]["stockyard.dev/cloudformation-owner"] in str(stack.resources["Lab"].physical_id)
    runner.update(stack, changed)
    assert served.call("GET", f"/v1/node-providers/{name}").body["display_name"] == "A lab"
    assert served.call("GET", f"/v1/cluster-profiles/{base}").status == 200
    runner.delete(stack)
    assert served.call("GET", f"/v1/node-providers/{name}").status == 404
    assert served.call("GET", f"/v1/cluster-profiles/{base}").status == 404


def test_a_client_that_the_realm_refuses_is_named(served: Served, secret: str) -> None:
    with pytest.raises(StackFailed, match="refuses the client platform-pipeline"):
        region(served, "no-such-secret").create("served", template(Lab=("NodeProvider", {"kind": "simulated"})))


def test_a_cluster_with_its_nodes_is_deployed_changed_rolled_back_and_deleted(served: Served, secret: str) -> None:
    runner = region(served, secret, slowly)
    stack = runner.create("shop", yard())
    outputs, lab = stack.resources["Cluster"].data, stack.resources["Lab"].data["Name"]
    pools = f"/v1/clusters/{outputs['Name']}/pools"
    assert outputs["Endpoint"].startswith("https://")
    assert outputs["CertificateAuthority"]
    assert served.identity_clients(outputs["ClientId"])
    runner.update(stack, yard(2, description="Other", tags={"cost": "7"}))
    with pytest.raises(StackFailed, match="/quantity"):
        runner.update(stack, yard(-1, description="Refused", tags={}))
    assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
    cluster = served.call("GET", f"/v1/clusters/{outputs['Name']}").body
    assert (cluster["description"], cluster["tags"]["cost"], cluster["status"]) == ("Other", "7", "ready")
    assert [pool["quantity"] for pool in served.call("GET", pools).body["items"]] == [2]
    runner.delete(stack)
    assert served.call("GET", f"/v1/clusters/{outputs['Name']}").status == 404
    assert served.call("GET", f"/v1/node-providers/{lab}").status == 404
    assert served.identity_clients(outputs["ClientId"]) == []
    tagged = [{"Name": "tag:vantage-cluster", "Values": [outputs["ClientId"]]}]
    ec2 = served.aws("ec2", ACME_ACCOUNT)
    assert ec2.describe_vpcs(Filters=tagged)["Vpcs"] == []
    machines = [each for group in ec2.describe_instances(Filters=tagged)["Reservations"] for each in group["Instances"]]
    assert {each["State"]["Name"] for each in machines} == {"terminated"}
