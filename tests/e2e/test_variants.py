"""A cluster and a claim on EC2, and a cluster on EKS, in an account of each variant, by HTTP on one local cloud: each
creation runs to its end, and no call is refused. Two variants by default, by the seed; all of them in the soak."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import pytest

from local.aws import tenant_role
from local.aws.accounts import OWN_ACCOUNT, REGION
from local.aws.permissions import variants
from local.fault_plan import Variant
from local.seeds import KEY_PAIR
from tests.harness.asks import served_asks

if TYPE_CHECKING:
    from local.aws.permissions.policies import Ask
    from local.testing.serving import Served

pytestmark = pytest.mark.timeout(1200)

ACCOUNTS: dict[Variant, str] = {variant: f"4444444444{number}" for number, variant in enumerate(get_args(Variant), 40)}
ZONES = tuple(REGION + letter for letter in "abc")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A local cloud whose tenant has an account of each variant besides. Ten functions run at a time, as AWS lets a new
    account of ours have them."""
    from local.testing.serving import serving

    folder = tmp_path_factory.mktemp("variants")
    plan = folder / "faults.json"
    plan.write_text(
        json.dumps({"managed": 0.1, "functions": 10, "variants": {n: variant for variant, n in ACCOUNTS.items()}})
    )
    yield from serving(folder / "home", "--no-limits", "--faults", str(plan))


class OfVariant:
    """The account of a variant, registered and verified, and what is created in it."""

    def __init__(self, served: Served, variant: Variant) -> None:
        self.served, self.variant, self.number = served, variant, ACCOUNTS[variant]
        self.role = f"stockyard-{variant}"
        key = {"volume_key_arn": variants.CENTRAL_KEY} if variant == "central-key" else {}
        attributes = {"role_arn": f"arn:aws:iam::{self.number}:role/{self.role}", **key}
        self.tags = {variants.DEMANDED: "a"} if variant == "guardrails" else {}
        account = self.call("POST", "cloud-accounts", {"provider": "aws", "name": variant, "attributes": attributes})
        self.id = account["id"]
        template = self.call("GET", f"cloud-accounts/{self.id}/template")
        tenant_role.deploy(served.aws("iam", self.number), template, self.number, _trust(account["external_id"]))
        runs = self.call("GET", f"cloud-accounts/{self.id}/template?runs=true")
        tenant_role.deploy_runs(partial(served.aws, account=self.number), runs, self.number)
        assert self.call("POST", f"cloud-accounts/{self.id}/verify")["verification"] == "verified"
        self.ec2 = served.aws("ec2", self.number)
        self.ec2.create_key_pair(KeyName=KEY_PAIR)
        self.network = shared_network(self.ec2) if variant == "shared-network" else {}

    def call(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.served.call(method, f"/v1/{path}", body)
        assert answer.status in (200, 201, 202), answer.text
        return answer.body

    def finish(self, operation: str) -> None:
        """Wait for the success of an operation."""
        ended_operation = self.served.operation(operation)
        assert ended_operation["status"] == "succeeded", (self.variant, ended_operation)

    def begin_cluster(self, driver: str, settings: dict[str, Any]) -> dict[str, Any]:
        wish = {"name": f"{driver}-{self.variant}", "description": "d", "cluster_type": "k8s", "driver": driver}
        settings, tags = {"region_name": REGION, **settings}, self.tags
        return dict(
            self.call("POST", "clusters", {**wish, "cloud_account_id": self.id, "settings": settings, "tags": tags})
        )

    def begin_claim(self, cluster: str) -> dict[str, Any]:
        spec = {"cloudAccount": self.id, "region": REGION, "instanceTypes": ["t3.medium"]}
        self.call("POST", "node-providers", {"name": f"of-{self.variant}", "kind": "ec2", "spec": spec})
        wish = {"name": f"on-{self.variant}", "cluster": cluster, "provider": f"of-{self.variant}"}
        return dict(self.call("POST", "node-claims", wish))


def shared_network(ec2: Any) -> dict[str, Any]:
    """A VPC of another account with a private and a public subnet in each zone, and ways out."""
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    private, public = (ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"] for _ in range(2))
    for number, zone in enumerate(ZONES):
        for table, subnet_index in ((private, number), (public, number + 10)):
            answer = ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.9.{subnet_index}.0/24", AvailabilityZone=zone)
            subnet = answer["Subnet"]["SubnetId"]
            ec2.associate_route_table(RouteTableId=table, SubnetId=subnet)
    nat = ec2.create_nat_gateway(SubnetId=subnet, ConnectivityType="private")["NatGateway"]["NatGatewayId"]
    for table, target in ((private, {"NatGatewayId": nat}), (public, {"GatewayId": gateway})):
        ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", **target)
    return {"vpc_id": vpc}


def _trust(external_id: str) -> dict[str, Any]:
    statement = {
        "Effect": "Allow",
        "Action": "sts:AssumeRole",
        "Principal": {"AWS": f"arn:aws:iam::{OWN_ACCOUNT}:root"},
        "Condition": {"StringEquals": {"sts:ExternalId": external_id}},
    }
    return {"Version": "2012-10-17", "Statement": [statement]}


CONTROL = {"name": "control-plane", "role": "control", "min_size": 1, "max_size": 1, "instance_types": ["t3.xlarge"]}


def test_creations_run_to_their_end_in_each_variant_and_nothing_is_refused(
    served: Served, soaking: bool, seed: int
) -> None:
    all_variants: tuple[Variant, ...] = get_args(Variant)
    selection = all_variants if soaking else random.Random(seed).sample(all_variants, 2)
    accounts = [OfVariant(served, variant) for variant in selection]
    on_ec2 = [
        a.begin_cluster("ec2", {**a.network, "key_pair": KEY_PAIR, "autoscaler_node_groups": [CONTROL]})
        for a in accounts
    ]
    on_eks = [account.begin_cluster("eks", {}) for account in accounts]
    claims = []
    for account, cluster in zip(accounts, on_ec2, strict=True):
        account.finish(cluster["operation_id"])
        claims.append(account.begin_claim(cluster["id"]))
    for account, cluster, claim in zip(accounts, on_eks, claims, strict=True):
        account.finish(cluster["operation_id"])
        account.finish(claim["operation_id"])
        asks = served_asks(served.home, account.role)
        assert [str(ask) for ask, is_refused in asks if is_refused] == [], account.variant
        assert_variant_was_met(account.variant, [ask for ask, _ in asks])


def assert_variant_was_met(variant: Variant, asks: list[Ask]) -> None:
    """Check that what is special of the account was asked of its calls: else none could have been refused for it."""
    launches = [ask for ask in asks if ask.action == "ec2:RunInstances"]
    of_owner = {ask.resource.split(":")[5].partition("/")[0] for ask in asks if f":{variants.OWNER}:" in ask.resource}
    expected = {"shared-network": {"subnet", "vpc"}, "central-key": {"key"}}
    assert of_owner == expected.get(variant, set()), variant
    checks = [ask for ask in launches if ask.resource.split(":")[5].partition("/")[0] in ("instance", "volume")]
    assert checks, variant
    are_tagged = {f"aws:RequestTag/{variants.DEMANDED}" in ask.context for ask in checks}
    assert are_tagged == {variant == "guardrails"}, variant
