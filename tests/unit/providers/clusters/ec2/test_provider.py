"""The whole life of a cluster's AWS side, against moto."""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import replace
from typing import Any

import boto3
import pytest

from local.aws.corrections.refusals import gone_have_no_tags, planned_refusals
from stockyard.errors import CredentialsRevoked, NotYetVisible, PermissionDenied, VendorRefused
from stockyard.machines.sources import Sources
from stockyard.providers.clouds.aws.policies import tenant_template
from stockyard.providers.clouds.aws.tags import Owner
from stockyard.providers.clusters.ec2.members import identity
from stockyard.providers.clusters.ec2.provider import Ec2ClusterDriver
from tests.harness.worlds.stage import Stage


def test_created_cluster_has_reference_names_and_deletion_leaves_nothing(yard: Any) -> None:
    before = sorted(yard.living())
    facts = yard.create()
    session, stem = yard.tenant(), f"vantage-{yard.cluster.client_id}"
    assert session.client("iam").get_role(RoleName=f"{stem}-node-role")["Role"]["PermissionsBoundary"][
        "PermissionsBoundaryArn"
    ] == ("arn:aws:iam::222222222222:policy/vantage-node-boundary-4c4afe32")
    profile = session.client("iam").get_instance_profile(InstanceProfileName=f"{stem}-instance-profile")
    assert [r["RoleName"] for r in profile["InstanceProfile"]["Roles"]] == [f"{stem}-node-role"]
    named = [{"Name": "tag:Name", "Values": [f"{stem}-control-plane"]}]
    instances = session.client("ec2").describe_instances(Filters=named)["Reservations"][0]["Instances"]
    assert [i["InstanceId"] for i in instances] == [facts["instance_id"]]
    assert instances[0]["MetadataOptions"]["HttpTokens"] == "required"
    assert instances[0]["MetadataOptions"]["HttpPutResponseHopLimit"] == 1
    assert instances[0]["KeyName"] == "my-key"
    assert facts["endpoint"].startswith("https://")
    assert facts["endpoint"].endswith(":6443")
    carried = {t["Key"]: t["Value"] for t in instances[0]["Tags"]}
    assert carried["stockyard:installation"] == "inst-1"
    assert carried["stockyard:tenant"] == "acme"
    assert carried["stockyard:resource"] == yard.cluster.id
    assert carried["stockyard:generation"] == "1"
    assert carried["vantage-cluster"] == yard.cluster.client_id
    yard.later(120)
    yard.delete()
    assert sorted(yard.living()) == before
    assert yard.ledger.lines() == []


def test_a_cluster_without_a_key_pair_has_machines_without_one(yard: Any) -> None:
    yard.with_settings(key_pair=None)
    facts = yard.create()
    answer = yard.tenant().client("ec2").describe_instances(InstanceIds=[facts["instance_id"]])
    assert "KeyName" not in answer["Reservations"][0]["Instances"][0]


def test_network_has_public_and_private_subnets_with_routes(yard: Any) -> None:
    yard.ensure("network")
    ec2 = yard.tenant().client("ec2")
    vpc = yard.ledger.find("vpc", "main").vendor_id
    here = [{"Name": "vpc-id", "Values": [vpc]}]
    subnets = ec2.describe_subnets(Filters=here)["Subnets"]
    assert ec2.describe_vpcs(VpcIds=[vpc])["Vpcs"][0]["CidrBlock"] == "10.0.0.0/16"
    assert len(subnets) == 4
    assert len({s["AvailabilityZone"] for s in subnets}) == 2
    targets = {}
    for table in ec2.describe_route_tables(Filters=here)["RouteTables"]:
        for route in table["Routes"]:
            if route.get("DestinationCidrBlock") == "0.0.0.0/0":
                for association in table["Associations"]:
                    targets[association["SubnetId"]] = route.get("NatGatewayId") or route["GatewayId"]
    kinds = sorted(target.split("-")[0] for target in targets.values())
    assert kinds == ["igw", "igw", "nat", "nat"]


def test_controllers_have_a_role_of_their_own_for_volumes_of_this_cluster(yard: Any) -> None:
    """A node may only read; the control plane's role reaches volumes and machines by the cluster's tags."""
    yard.with_settings(cloud_controllers=True).create()
    stem, iam = f"vantage-{yard.cluster.client_id}", yard.tenant().client("iam")
    profile = iam.get_instance_profile(InstanceProfileName=f"{stem}-ctrl-instance-profile")["InstanceProfile"]
    assert [role["RoleName"] for role in profile["Roles"]] == [f"{stem}-ctrl-role"]
    machine = yard.tenant().client("ec2").describe_instances(
        InstanceIds=[yard.ledger.find("instance", "control-plane").vendor_id]
    )["Reservations"][0]["Instances"][0]  # fmt: skip
    assert machine["IamInstanceProfile"]["Arn"].endswith(f"{stem}-ctrl-instance-profile")
    policies = {
        role: iam.get_role_policy(RoleName=f"{stem}-{role}", PolicyName=name)["PolicyDocument"]["Statement"]
        for role, name in (("node-role", "node"), ("ctrl-role", "control-plane"))
    }
    assert [statement["Sid"] for statement in policies["node-role"]] == ["ReadTheMachine"]
    own = {"stockyard:installation": "inst-1", "ebs.csi.aws.com/cluster-name": yard.cluster.client_id}
    conditions = {s["Sid"]: s.get("Condition", {}).get("StringEquals") for s in policies["ctrl-role"]}
    assert conditions["CreateVolumes"] == {f"aws:RequestTag/{key}": value for key, value in own.items()}
    assert conditions["ChangeVolumes"] == {f"aws:ResourceTag/{key}": value for key, value in own.items()}
    assert conditions["AttachToMachines"]["aws:ResourceTag/vantage-cluster"] == yard.cluster.client_id
    assert [s["Sid"] for s in policies["ctrl-role"] if s["Resource"] == "*"] == ["ControllersRead"]
    yard.later(120)
    yard.delete()
    assert yard.living() == []


SNAPSHOTS = (
    {
        "Sid": "EtcdSnapshots",
        "Action": ["s3:GetObject", "s3:PutObject"],
        "Condition": {"StringEquals": {"aws:ResourceAccount": "222222222222"}},
    },
    {"Sid": "SnapshotKeys", "Action": ["kms:Decrypt", "kms:GenerateDataKey"]},
)
"""What a role has where the cluster keeps snapshots in S3, in a bucket with a key; `test_etcd_backup` looks at it."""


def test_boundary_allows_a_control_plane_what_its_policy_says_and_no_more(yard: Any) -> None:
    owner = Owner("inst-1", "acme", yard.cluster.id, "1", yard.cluster.client_id, "vantage")
    own = identity.control_plane_policy(yard.account, owner)["Statement"]
    own.extend(SNAPSHOTS)
    template = tenant_template.render(yard.account, "inst-1", Stage())
    bound = template["Resources"]["Boundary"]["Properties"]["PolicyDocument"]["Statement"]
    assert [(s["Sid"], s["Action"]) for s in bound] == [(s["Sid"], s["Action"]) for s in own]
    for wide, narrow in zip(bound, own, strict=True):
        equals = wide.get("Condition", {}).get("StringEquals", {})
        assert equals.items() <= narrow.get("Condition", {}).get("StringEquals", {}).items()
        if not any(word in str(wide["Action"]) for word in ("kms", "s3")) and wide["Resource"] != "*":
            assert any("stockyard:installation" in key for key in equals), wide["Sid"]
    assert set(identity.node_policy()["Statement"][0]["Action"]) <= set(bound[0]["Action"])


def test_control_plane_starts_from_the_image_and_fetches_from_the_mirrors(yard: Any, ec2_config: Any) -> None:
    mirrors = Sources(
        "https://mirror.test/k8s", "https://mirror.test/ubuntu", "mirror.test:5000", "https://mirror.test/raw"
    )
    yard.provider = Ec2ClusterDriver(replace(ec2_config, sources=mirrors), boto3.Session)
    yard.with_settings(image="ami-12c6146b").create()
    ec2, machine = yard.tenant().client("ec2"), yard.ledger.find("instance", "control-plane").vendor_id
    instance = ec2.describe_instances(InstanceIds=[machine])["Reservations"][0]["Instances"][0]
    assert instance["ImageId"] == "ami-12c6146b"
    attribute = ec2.describe_instance_attribute(InstanceId=machine, Attribute="userData")
    text = gzip.decompress(base64.b64decode(attribute["UserData"]["Value"])).decode()
    assert "1.7 https://mirror.test/k8s https://mirror.test/ubuntu mirror.test:5000 https://mirror.test/raw\n" in text


def test_repeated_phases_change_nothing(yard: Any) -> None:
    yard.create()
    before, writes = sorted(yard.living()), yard.ledger.writes
    yard.later(3600)
    yard.create()
    assert sorted(yard.living()) == before
    assert yard.ledger.writes == writes


CREATE = ("account", "network", "security", "identity", "endpoint", "bastion", "control_plane")
CALLS = [
    ("network", "vpc/main"),
    ("network", "internet_gateway/main"),
    ("network", "subnet/public-a"),
    ("network", "subnet/private-b"),
    ("network", "route_table/public"),
    ("network", "address/nat"),
    ("network", "nat_gateway/main"),
    ("network", "route_table/private"),
    ("network", "vpc_endpoint/s3"),
    ("security", "security_group/control-plane"),
    ("security", "security_group/node"),
    ("identity", "role/node"),
    ("identity", "instance_profile/node"),
    ("endpoint", "target_group/api"),
    ("endpoint", "load_balancer/api"),
    ("control_plane", "instance/control-plane"),
    ("control_plane", "volume/etcd"),
    ("control_plane", "snapshot_policy/etcd"),
]


def _crash(yard: Any, phase: str, line: str) -> tuple[str, ...]:
    """Run the phases until the crash. Returns the phases that ran, the crashed one included."""
    reached = CREATE[: CREATE.index(phase) + 1]
    yard.ledger.fail_made = line
    for name in reached[:-1]:
        yard.ensure(name)
    with pytest.raises(RuntimeError, match="the machine stopped"):
        yard.ensure(phase)
    return reached


def test_resource_is_adopted_after_crash_before_record(yard: Any) -> None:
    """One creation crashes once at each line; the next attempt adopts the resource and reaches the next line."""
    for phase in CREATE:
        for line in (line for line_phase, line in CALLS if line_phase == phase):
            yard.ledger.fail_made = line
            with pytest.raises(RuntimeError, match="the machine stopped"):
                yard.ensure(phase)
        yard.ensure(phase)
    lines = yard.ledger.lines()
    assert {entry.state for entry in lines} == {"made"}
    # A root disk belongs to its machine, a snapshot to its policy: they have no line. A second of anything would make
    # the numbers differ.
    living = yard.living()
    assert (len([x for x in living if x.startswith("vol-")]), len([x for x in living if x.startswith("snap-")])) == (
        2,
        1,
    )
    assert len(living) - 2 == len(lines)


@pytest.mark.parametrize(("phase", "line"), CALLS)
def test_resource_is_deleted_after_crash_before_record(yard: Any, phase: str, line: str) -> None:
    _crash(yard, phase, line)
    yard.delete()
    assert yard.living() == []
    assert yard.ledger.lines() == []


def test_creation_waits_for_visibility_delay_after_open_intent(yard: Any) -> None:
    yard.work("network")
    yard.ledger.intend("vpc", "main", {"name": "x"})
    with pytest.raises(NotYetVisible):
        yard.provider.ensure("network", yard.work("network"))
    assert yard.living() == []
    yard.later(61)
    yard.ensure("network")
    assert len([x for x in yard.living() if x.startswith("vpc-")]) == 1


def test_removal_waits_for_visibility_delay_after_open_intent(yard: Any) -> None:
    yard.work("network")
    yard.ledger.intend("vpc", "main", {"name": "x"})
    outcome = yard.provider.remove("network", yard.work("network"))
    assert not outcome.done
    assert outcome.remaining == ("vpc main",)
    yard.later(61)
    assert yard.provider.remove("network", yard.work("network")).done


@pytest.mark.parametrize("seconds", [0, 120])
def test_deletion_succeeds_for_resources_removed_by_others(yard: Any, seconds: int) -> None:
    """The rights of our role hang on tags, and EC2 knows none of what is gone."""
    before = sorted(yard.living())
    facts = yard.create()
    ec2 = yard.tenant().client("ec2")
    ec2.terminate_instances(InstanceIds=[facts["instance_id"]])
    ec2.delete_nat_gateway(NatGatewayId=yard.ledger.find("nat_gateway", "main").vendor_id)
    ec2.release_address(AllocationId=yard.ledger.find("address", "nat").vendor_id)
    yard.later(seconds)
    with gone_have_no_tags():
        yard.delete()
    assert sorted(yard.living()) == before
    assert yard.ledger.lines() == []


def test_refused_removal_of_existing_resource_is_raised(yard: Any) -> None:
    yard.ensure("network")
    yard.later(120)
    with planned_refusals({}, {"ec2:DeleteRouteTable": 1}), pytest.raises(PermissionDenied):
        yard.remove("network")
    yard.remove("network")
    assert yard.living() == []


def test_foreign_role_is_neither_adopted_nor_deleted(yard: Any) -> None:
    iam = yard.tenant().client("iam")
    name = f"vantage-{yard.cluster.client_id}-node-role"
    iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": []}))
    with pytest.raises(NotYetVisible):
        yard.provider.ensure("identity", yard.work("identity"))
    yard.later(61)
    with pytest.raises(VendorRefused):
        yard.provider.ensure("identity", yard.work("identity"))
    yard.remove("identity")
    assert iam.get_role(RoleName=name)["Role"]["RoleName"] == name


def test_resources_of_cluster_controllers_are_deleted(yard: Any) -> None:
    yard.create()
    session, key = yard.tenant(), f"kubernetes.io/cluster/{yard.cluster.client_id}"
    ec2, elbv2 = session.client("ec2"), session.client("elbv2")
    owned = [{"Key": key, "Value": "owned"}]
    vpc = yard.ledger.find("vpc", "main").vendor_id
    group = ec2.create_security_group(
        GroupName="k8s-elb-1", Description="d", VpcId=vpc,
        TagSpecifications=[{"ResourceType": "security-group", "Tags": owned}],
    )["GroupId"]  # fmt: skip
    node = yard.ledger.find("security_group", "node").vendor_id
    pairs = [{"GroupId": group}]
    ec2.authorize_security_group_ingress(
        GroupId=node, IpPermissions=[{"IpProtocol": "tcp", "FromPort": 80, "ToPort": 80, "UserIdGroupPairs": pairs}]
    )
    subnet = yard.ledger.find("subnet", "public-a").vendor_id
    elbv2.create_load_balancer(Name="k8s-web", Type="network", Subnets=[subnet], Tags=owned)
    elbv2.create_target_group(Name="k8s-web", Protocol="TCP", Port=80, VpcId=vpc, Tags=owned)
    session.client("elb").create_load_balancer(
        LoadBalancerName="classic", Subnets=[subnet], Tags=owned,
        Listeners=[{"Protocol": "tcp", "LoadBalancerPort": 80, "InstancePort": 80}],
    )  # fmt: skip
    specification = [{"ResourceType": "volume", "Tags": owned}]
    ec2.create_volume(AvailabilityZone="us-east-1a", Size=1, TagSpecifications=specification)
    someones = ec2.create_volume(AvailabilityZone="us-east-1a", Size=1)["VolumeId"]
    yard.later(120)
    # moto gives a classic load balancer a group of its own and forgets it.
    artefact = {x["GroupId"] for x in ec2.describe_security_groups()["SecurityGroups"] if "elb_" in x["GroupName"]}
    yard.delete()
    assert [x for x in yard.living() if x not in artefact] == [someones]
    assert session.client("elb").describe_load_balancers()["LoadBalancerDescriptions"] == []


def test_sweep_lists_and_removes_all_resources(yard: Any) -> None:
    yard.create()
    foreign_things = yard.cloud.tagged(yard.account, "another-installation", "acme", ["us-east-1"])
    assert list(foreign_things) == []
    things = list(yard.cloud.tagged(yard.account, "inst-1", "acme", ["us-east-1", "us-west-2"]))
    assert len({(t.kind, t.vendor_id) for t in things}) == len(things)
    assert {t.resource_id for t in things} == {yard.cluster.id}
    assert all(t.created_at == "2026-01-01T00:00:00.000Z" for t in things if t.kind == "vpc")
    assert not yard.cloud.discard(yard.account, things[0], "globex")
    # What another thing still holds goes when the sweep comes by again.
    held_things = [thing for thing in things if not yard.cloud.discard(yard.account, thing, "acme")]
    assert [thing for thing in held_things if not yard.cloud.discard(yard.account, thing, "acme")] == []
    assert yard.living() == []
    assert list(yard.cloud.tagged(yard.account, "inst-1", "acme", ["us-east-1"])) == []


def test_account_phase_verifies_role(yard: Any) -> None:
    assert yard.ensure("account").message == "AWS account 222222222222"
    yard.account.attributes.pop("role_arn")
    with pytest.raises(CredentialsRevoked):
        yard.provider.ensure("account", yard.work("account"))


def test_control_node_group_decides_instance_type(yard: Any) -> None:
    groups = [{"name": "c", "role": "control", "instance_types": ["m5.large"]}]
    yard.with_settings(control_plane_instance_type="t3.large", autoscaler_node_groups=groups)
    facts = yard.create()
    answer = yard.tenant().client("ec2").describe_instances(InstanceIds=[facts["instance_id"]])
    assert answer["Reservations"][0]["Instances"][0]["InstanceType"] == "m5.large"


def test_terminated_machine_fails_with_reason(yard: Any) -> None:
    facts = yard.create()
    yard.tenant().client("ec2").terminate_instances(InstanceIds=[facts["instance_id"]])
    with pytest.raises(VendorRefused, match="terminated"):
        yard.provider.ensure("control_plane", yard.work("control_plane"))
