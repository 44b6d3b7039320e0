"""Nodes on EC2 that join a cluster on EKS: by EKS's image and the role of the cluster's nodes, without any token."""

from __future__ import annotations

import base64
import json
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from email import message_from_bytes
from io import BytesIO
from typing import Any

import boto3
import pytest

from local.aws.corrections.compute.compute import instant_fleets
from stockyard.domain.records import NodeClaim, NodeEnvironment, NodeProvider
from stockyard.errors import NotYetVisible, VendorNotFound, VendorRefused
from stockyard.operations.engine.ledger import Owner, StoreLedger, lines_of
from stockyard.ports import Create, Outcome
from stockyard.ports.node_work import EnvironmentWork, NodeWork
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.resources.child_names import role_name
from stockyard.providers.nodes.ec2 import managed
from stockyard.providers.nodes.ec2.provider import Ec2Nodes, Ec2NodesConfig
from tests.unit.providers.nodes.ec2.conftest import CLAIM, ENVIRONMENT, MOMENT, offers, option, placed, provider
from tests.unit.providers.nodes.eks.conftest import ACCOUNT, Yard, account_with_eks

GPU_TAINT = {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}
STARTUP = {"key": "cni", "effect": "NoExecute"}
ENDPOINT, AUTHORITY = "https://abc.eks.example", "Y2E="


@dataclass
class Hand:
    """The source for a cluster on EKS. ``images`` are those that the publisher names by parameters."""

    yard: Yard
    source: Ec2Nodes
    provider: NodeProvider
    environment: NodeEnvironment
    images: dict[str, str]
    script: Any = None
    """The second part of the user data that was read last."""

    def environment_work(self) -> EnvironmentWork:
        owner = Owner.of_environment(self.environment, "us-east-1", 1)
        ledger = StoreLedger(self.yard.services, owner, "environment")
        return EnvironmentWork(
            "acme", "inst", self.environment, self.provider, self.yard.cluster, ledger, self.yard.clock.now(), "op_1",
            ACCOUNT,
        )  # fmt: skip

    def prepare(self) -> Outcome:
        outcome = self.yard.until_done(lambda: self.source.prepare(self.environment_work()))
        self.environment = replace(self.environment, phase="Available", outputs=dict(outcome.facts))
        return outcome

    def claim(self, letter: str = "A", **fields: Any) -> NodeClaim:
        claim = NodeClaim(
            f"{CLAIM[:-1]}{letter}", f"workers-{letter.lower()}", MOMENT, MOMENT, cluster_id=self.yard.cluster.id,
            placement=placed(option("m6i.large")), operation_id="op_1", **fields,
        )  # fmt: skip
        self.yard.store.commit(Create(claim))
        return claim

    def work(self, claim: NodeClaim) -> NodeWork:
        ledger = StoreLedger(self.yard.services, Owner.of_claim(claim, "op_1", 1, "us-east-1", 1), "launch")
        return NodeWork(
            "acme", "inst", claim, self.provider, ledger, self.yard.clock.now(), "op_1", self.yard.cluster, ACCOUNT,
            self.environment,
        )  # fmt: skip

    def launch(self, claim: NodeClaim) -> Outcome:
        return self.yard.until_done(lambda: self.source.launch(self.work(claim)))

    def instance(self, machine: str) -> Any:
        (reservation,) = self.yard.groups.ec2.describe_instances(InstanceIds=[machine])["Reservations"]
        return reservation["Instances"][0]

    def node_config(self, machine: str) -> dict[str, Any]:
        """Part of the user data that EKS's image reads."""
        answer = self.yard.groups.ec2.describe_instance_attribute(InstanceId=machine, Attribute="userData")
        parts: Any = message_from_bytes(base64.b64decode(answer["UserData"]["Value"])).get_payload()
        part, self.script = parts
        assert part.get_content_type() == "application/node.eks.aws"
        assert self.script.get_content_type() == "text/x-shellscript"
        document: dict[str, Any] = json.loads(part.get_payload())
        return document


@pytest.fixture
def hand(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hand]:
    with account_with_eks() as yard, instant_fleets({}):
        image = yard.groups.ec2.describe_images(Filters=[{"Name": "architecture", "Values": ["x86_64"]}])["Images"][0]
        images = {managed.IMAGE_PARAMETER.format("1.35", "x86_64", "standard"): image["ImageId"]}
        real = Calls.call

        def call(calls: Calls, service: str, operation: str, **parameters: Any) -> Any:
            if operation != "get_parameter":
                return real(calls, service, operation, **parameters)
            if parameters["Name"] not in images:
                raise VendorNotFound("no parameter")
            return {"Parameter": {"Value": images[parameters["Name"]]}}

        monkeypatch.setattr(Calls, "call", call)
        yard.cluster = replace(
            yard.cluster, endpoint=ENDPOINT, certificate_authority=AUTHORITY, kubernetes_version="1.35"
        )
        yard.groups.iam.create_role(
            RoleName=role_name("vantage", yard.cluster.client_id, "node-role"),
            Path="/stockyard/",
            AssumeRolePolicyDocument="{}",
        )
        environment = NodeEnvironment(ENVIRONMENT, yard.cluster.id, "npr", "aws", MOMENT, MOMENT)
        yard.store.commit(Create(environment))
        named = provider(subnets=list(yard.groups.subnets.values()))
        source = Ec2Nodes(Ec2NodesConfig("vantage", "https://api.example.test", 60), boto3.Session, offers)
        yield Hand(yard, source, named, environment, images)


def test_a_machine_is_told_its_cluster_and_no_secret(hand: Hand) -> None:
    hand.prepare()
    outcome = hand.launch(hand.claim(taints=(GPU_TAINT,), startup_taints=(STARTUP,), kubelet_args={"max-pods": "20"}))
    machine = outcome.facts["machine_id"]
    instance, shown_cluster = hand.instance(machine), hand.yard.groups.eks.describe_cluster(name=hand.yard.groups.name)
    assert outcome.facts["host_name"] == instance["PrivateDnsName"], "EKS calls the node so"
    assert hand.node_config(machine) == {
        "apiVersion": "node.eks.aws/v1alpha1",
        "kind": "NodeConfig",
        "spec": {
            "cluster": {
                "name": hand.yard.groups.name,
                "apiServerEndpoint": ENDPOINT,
                "certificateAuthority": AUTHORITY,
                "cidr": shown_cluster["cluster"]["kubernetesNetworkConfig"]["serviceIpv4Cidr"],
            },
            "kubelet": {
                "flags": ["--register-with-taints=nvidia.com/gpu=true:NoSchedule,cni=:NoExecute", "--max-pods=20"]
            },
        },
    }
    network = shown_cluster["cluster"]["resourcesVpcConfig"]
    assert [group["GroupId"] for group in instance["SecurityGroups"]] == [network["clusterSecurityGroupId"]]
    assert instance["ImageId"] in hand.images.values()
    assert instance["MetadataOptions"]["InstanceMetadataTags"] == "disabled"
    tags = {tag["Key"]: tag["Value"] for tag in instance["Tags"]}
    assert tags["stockyard:resource"] == hand.work(hand.yard.store.get(NodeClaim, CLAIM)).claim.id
    assert tags[f"kubernetes.io/cluster/{hand.yard.groups.name}"] == "owned"


def test_a_machine_tells_stockyard_that_it_is_taken_back(hand: Hand) -> None:
    hand.prepare()
    hand.node_config(hand.launch(hand.claim()).facts["machine_id"])
    script = hand.script.get_payload()
    archive = script.partition("--directory /\n")[2].partition("END_OF_FILES")[0]
    with tarfile.open(fileobj=BytesIO(base64.b64decode(archive)), mode="r:gz") as files:
        texts = {name: files.extractfile(name).read().decode() for name in files.getnames()}
    assert json.loads(texts["etc/stockyard/node.json"]) == {
        "api_url": "https://api.example.test",
        "cluster_id": hand.yard.cluster.id,
    }
    unit = texts["etc/systemd/system/stockyard-watch.service"]
    program = unit.partition("ExecStart=/usr/bin/python3 /")[2].split()
    assert program[1] == "watch"
    assert {program[0], "usr/local/lib/stockyard/stockyard_machine.py"} <= set(texts)
    assert script.endswith("systemctl enable --now --no-block stockyard-watch.service\n")
    checked = subprocess.run(["bash", "-n", "/dev/stdin"], input=script, text=True, capture_output=True, check=False)
    assert checked.returncode == 0, checked.stderr


def test_an_entry_that_eks_took_away_is_made_again_for_the_next_machine(hand: Hand) -> None:
    hand.prepare()
    role = role_name("vantage", hand.yard.cluster.client_id, "node-role")
    principal = f"arn:aws:iam::222222222222:role/stockyard/{role}"
    entry = {"clusterName": hand.yard.groups.name, "principalArn": principal}
    hand.yard.groups.eks.delete_access_entry(**entry)
    hand.launch(hand.claim())
    assert hand.yard.groups.eks.describe_access_entry(**entry)["accessEntry"]["type"] == "EC2_LINUX"


def test_role_of_the_nodes_is_in_a_profile_and_admitted_once(hand: Hand) -> None:
    hand.prepare()
    first = lines_of(hand.yard.services, ENVIRONMENT)
    role = role_name("vantage", hand.yard.cluster.client_id, "node-role")
    profile = f"vantage-{hand.yard.cluster.client_id}-nodes-instance-profile"
    listed = hand.yard.groups.iam.get_instance_profile(InstanceProfileName=profile)["InstanceProfile"]
    assert [each["RoleName"] for each in listed["Roles"]] == [role]
    principal = f"arn:aws:iam::222222222222:role/stockyard/{role}"
    entry = hand.yard.groups.eks.describe_access_entry(clusterName=hand.yard.groups.name, principalArn=principal)
    assert entry["accessEntry"]["type"] == "EC2_LINUX"
    hand.yard.clock.advance(3600)
    hand.prepare()
    assert lines_of(hand.yard.services, ENVIRONMENT) == first
    hand.yard.until_done(lambda: hand.source.clear(hand.environment_work()))
    assert hand.yard.groups.iam.list_instance_profiles()["InstanceProfiles"] == []
    assert lines_of(hand.yard.services, ENVIRONMENT) == []


def test_an_entry_that_eks_has_made_for_its_own_groups_is_used(hand: Hand) -> None:
    role = role_name("vantage", hand.yard.cluster.client_id, "node-role")
    principal = f"arn:aws:iam::222222222222:role/stockyard/{role}"
    entry = {"clusterName": hand.yard.groups.name, "principalArn": principal}
    hand.yard.groups.eks.create_access_entry(**entry, type="EC2_LINUX", tags={"made": "by EKS"})
    hand.prepare()
    assert hand.yard.groups.eks.describe_access_entry(**entry)["accessEntry"]["tags"] == {"made": "by EKS"}


def test_claims_that_are_told_different_things_have_templates_of_their_own(hand: Hand) -> None:
    hand.prepare()
    hand.launch(hand.claim("A"))
    hand.launch(hand.claim("B", taints=(GPU_TAINT,)))
    listed = hand.yard.groups.ec2.describe_launch_templates()["LaunchTemplates"]
    stem = f"vantage-{hand.yard.cluster.client_id}-aws"
    names = sorted(template["LaunchTemplateName"] for template in listed)
    assert (names[0], len(names)) == (stem, 2)
    assert names[1].startswith(f"{stem}-")


def test_machine_and_its_template_leave_nothing(hand: Hand) -> None:
    hand.prepare()
    claim = hand.claim(taints=(GPU_TAINT,))
    hand.launch(claim)
    hand.yard.until_done(lambda: hand.source.terminate(hand.work(claim)))
    hand.yard.until_done(lambda: hand.source.clear(hand.environment_work()))
    assert hand.yard.groups.machines() == []
    assert hand.yard.groups.ec2.describe_launch_templates()["LaunchTemplates"] == []


def test_a_version_without_image_is_refused_with_advice(hand: Hand) -> None:
    hand.images.clear()
    with pytest.raises(VendorRefused, match=r"us-east-1 has no image of EKS for Kubernetes 1\.35") as caught:
        hand.prepare()
    assert caught.value.hint == "Name an image in the node provider."


def test_a_cluster_that_is_not_shown_is_waited_for(hand: Hand) -> None:
    hand.yard.cluster = replace(hand.yard.cluster, client_id="another-12345678")
    with pytest.raises(NotYetVisible, match="is not shown"):
        managed.find(
            Calls(hand.source._sessions.of(ACCOUNT, "op_1"), "us-east-1"),
            hand.provider,
            hand.yard.cluster,
            None,
            hand.yard.clock.now(),
        )
