"""The whole life of a cluster's AWS side, against moto."""

from __future__ import annotations

import json
from typing import Any

import pytest

from local.corrections.refusals import gone_have_no_tags, planned_refusals
from stockyard.errors import CredentialsRevoked, NotYetVisible, PermissionDenied, VendorRefused


def test_a_created_cluster_has_the_names_of_the_reference_and_nothing_is_left_after_deletion(yard: Any) -> None:
    before = sorted(yard.living())
    facts = yard.create()
    session, stem = yard.tenant(), f"vantage-{yard.cluster.client_id}"
    assert session.client("iam").get_role(RoleName=f"{stem}-node-role")["Role"]["PermissionsBoundary"][
        "PermissionsBoundaryArn"
    ] == ("arn:aws:iam::222222222222:policy/vantage-node-boundary")
    profile = session.client("iam").get_instance_profile(InstanceProfileName=f"{stem}-instance-profile")
    assert [r["RoleName"] for r in profile["InstanceProfile"]["Roles"]] == [f"{stem}-node-role"]
    named = [{"Name": "tag:Name", "Values": [f"{stem}-control-plane"]}]
    found = session.client("ec2").describe_instances(Filters=named)["Reservations"][0]["Instances"]
    assert [i["InstanceId"] for i in found] == [facts["instance_id"]]
    assert found[0]["MetadataOptions"]["HttpTokens"] == "required"
    assert found[0]["MetadataOptions"]["HttpPutResponseHopLimit"] == 1
    assert found[0]["KeyName"] == "my-key"
    assert facts["endpoint"].startswith("https://")
    assert facts["endpoint"].endswith(":6443")
    carried = {t["Key"]: t["Value"] for t in found[0]["Tags"]}
    assert carried["stockyard:installation"] == "inst-1"
    assert carried["stockyard:tenant"] == "acme"
    assert carried["stockyard:resource"] == yard.cluster.id
    assert carried["stockyard:generation"] == "1"
    assert carried["vantage-cluster"] == yard.cluster.client_id
    yard.later(120)
    yard.delete()
    assert sorted(yard.living()) == before
    assert yard.ledger.lines() == []


def test_the_network_has_public_and_private_subnets_with_a_way_out(yard: Any) -> None:
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


def test_running_each_phase_again_changes_nothing(yard: Any) -> None:
    yard.create()
    before, writes = sorted(yard.living()), yard.ledger.writes
    yard.later(3600)
    yard.create()
    assert sorted(yard.living()) == before
    assert yard.ledger.writes == writes


CREATE = ("account", "network", "security", "identity", "endpoint", "control_plane")
CALLS = [
    ("network", "vpc/main"),
    ("network", "internet_gateway/main"),
    ("network", "subnet/public-a"),
    ("network", "subnet/private-b"),
    ("network", "route_table/public"),
    ("network", "address/nat"),
    ("network", "nat_gateway/main"),
    ("network", "route_table/private"),
    ("security", "security_group/control-plane"),
    ("security", "security_group/node"),
    ("identity", "role/node"),
    ("identity", "instance_profile/node"),
    ("endpoint", "target_group/api"),
    ("endpoint", "load_balancer/api"),
    ("control_plane", "instance/control-plane"),
]


def _crash(yard: Any, phase: str, line: str) -> tuple[str, ...]:
    """Create until the crash; the phases up to and with the one that crashed."""
    reached = CREATE[: CREATE.index(phase) + 1]
    yard.ledger.fail_made = line
    for name in reached[:-1]:
        yard.ensure(name)
    with pytest.raises(RuntimeError, match="the machine stopped"):
        yard.ensure(phase)
    return reached


def test_a_crash_between_call_and_record_is_found_again(yard: Any) -> None:
    """In one life: each line of it crashes once, and is found by the next attempt, which comes to the next."""
    for phase in CREATE:
        for line in (line for where, line in CALLS if where == phase):
            yard.ledger.fail_made = line
            with pytest.raises(RuntimeError, match="the machine stopped"):
                yard.ensure(phase)
        yard.ensure(phase)
    lines = yard.ledger.lines()
    assert {entry.state for entry in lines} == {"made"}
    # A root disk belongs to its machine and has no line; a second of anything would make the numbers differ.
    assert len([x for x in yard.living() if not x.startswith("vol-")]) == len(lines)


@pytest.mark.parametrize(("phase", "line"), CALLS)
def test_a_crash_between_call_and_record_is_deleted(yard: Any, phase: str, line: str) -> None:
    _crash(yard, phase, line)
    yard.delete()
    assert yard.living() == []
    assert yard.ledger.lines() == []


def test_what_may_be_hidden_is_waited_for_and_made_once_after_that(yard: Any) -> None:
    yard.work("network")
    yard.ledger.intend("vpc", "main", {"name": "x"})
    with pytest.raises(NotYetVisible):
        yard.provider.ensure("network", yard.work("network"))
    assert yard.living() == []
    yard.later(61)
    yard.ensure("network")
    assert len([x for x in yard.living() if x.startswith("vpc-")]) == 1


def test_a_line_that_is_only_intended_is_gone_only_after_the_cloud_must_have_shown_it(yard: Any) -> None:
    yard.work("network")
    yard.ledger.intend("vpc", "main", {"name": "x"})
    outcome = yard.provider.remove("network", yard.work("network"))
    assert not outcome.done
    assert outcome.remaining == ("vpc main",)
    yard.later(61)
    assert yard.provider.remove("network", yard.work("network")).done


@pytest.mark.parametrize("seconds", [0, 120])
def test_what_somebody_else_has_removed_is_gone_though_its_removal_is_refused(yard: Any, seconds: int) -> None:
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


def test_a_refused_removal_of_what_is_there_is_told(yard: Any) -> None:
    yard.ensure("network")
    yard.later(120)
    with planned_refusals({}, {"ec2:DeleteRouteTable": 1}), pytest.raises(PermissionDenied):
        yard.remove("network")
    yard.remove("network")
    assert yard.living() == []


def test_a_role_of_that_name_that_is_not_ours_is_neither_adopted_nor_deleted(yard: Any) -> None:
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


def _given_vpc(yard: Any) -> dict[str, str]:
    ec2 = yard.tenant().client("ec2")
    vpc = ec2.create_vpc(CidrBlock="172.20.0.0/16")["Vpc"]["VpcId"]
    made = {"vpc": vpc}
    for index, name in enumerate(("dark", "private", "public")):
        made[name] = ec2.create_subnet(VpcId=vpc, CidrBlock=f"172.20.{index}.0/24", AvailabilityZone="us-east-1a")[
            "Subnet"
        ]["SubnetId"]
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    address = ec2.allocate_address(Domain="vpc")["AllocationId"]
    nat = ec2.create_nat_gateway(SubnetId=made["public"], AllocationId=address)["NatGateway"]["NatGatewayId"]
    for name, target in (("public", {"GatewayId": gateway}), ("private", {"NatGatewayId": nat})):
        table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
        ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", **target)
        ec2.associate_route_table(RouteTableId=table, SubnetId=made[name])
    return made


@pytest.mark.parametrize("settings", [("vpc_id",), ("subnet_id",), ("vpc_id", "subnet_id")])
def test_a_given_network_is_used_and_left_untouched(yard: Any, settings: tuple[str, ...]) -> None:
    given = _given_vpc(yard)
    before = sorted(yard.living())
    values = {"vpc_id": given["vpc"], "subnet_id": given["private"]}
    yard.with_settings(**{name: values[name] for name in settings})
    assert list(yard.provider.inspect(yard.work("account"))) == []
    facts = yard.create()
    session = yard.tenant()
    instance = session.client("ec2").describe_instances(InstanceIds=[facts["instance_id"]])["Reservations"][0]
    assert instance["Instances"][0]["SubnetId"] == given["private"]
    balancer = session.client("elbv2").describe_load_balancers()["LoadBalancers"][0]
    assert balancer["Scheme"] == "internet-facing"
    assert [zone["SubnetId"] for zone in balancer["AvailabilityZones"]] == [given["public"]]
    yard.later(120)
    yard.delete()
    assert sorted(yard.living()) == before


def test_a_public_control_plane_stands_in_a_public_subnet(yard: Any) -> None:
    yard.with_settings(public_control_plane=True)
    facts = yard.create()
    found = yard.tenant().client("ec2").describe_instances(InstanceIds=[facts["instance_id"]])
    assert found["Reservations"][0]["Instances"][0]["SubnetId"] == yard.ledger.find("subnet", "public-a").vendor_id


@pytest.mark.parametrize(
    ("settings", "port", "cidrs"),
    [
        ({}, 22, set()),
        ({"ssh_cidrs": ["198.51.100.0/24"]}, 22, {"198.51.100.0/24"}),
        ({}, 6443, {"0.0.0.0/0"}),
        ({"api_cidrs": ["203.0.113.0/24"]}, 6443, {"203.0.113.0/24"}),
    ],
)
def test_only_the_named_ranges_reach_the_control_plane(
    yard: Any, settings: dict[str, Any], port: int, cidrs: set[str]
) -> None:
    yard.with_settings(**settings)
    yard.ensure("network")
    yard.ensure("security")
    ec2 = yard.tenant().client("ec2")
    nat = ec2.describe_addresses()["Addresses"][0]["PublicIp"]
    group = yard.ledger.find("security_group", "control-plane").vendor_id
    rules = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"][0]["IpPermissions"]
    found = {r["CidrIp"] for rule in rules if rule["FromPort"] == port for r in rule["IpRanges"]}
    inside = {"10.0.0.0/16", f"{nat}/32"} if port == 6443 else set()
    assert found == cidrs | inside


def test_what_the_cluster_itself_made_goes_first(yard: Any) -> None:
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


def test_the_sweep_sees_all_and_removes_all_in_its_order(yard: Any) -> None:
    yard.create()
    other = yard.provider.tagged(yard.account, "another-installation", "acme", ["us-east-1"])
    assert list(other) == []
    found = list(yard.provider.tagged(yard.account, "inst-1", "acme", ["us-east-1", "us-west-2"]))
    assert len({(t.kind, t.vendor_id) for t in found}) == len(found)
    assert {t.resource_id for t in found} == {yard.cluster.id}
    assert all(t.created_at == "2026-01-01T00:00:00.000Z" for t in found if t.kind == "vpc")
    assert not yard.provider.discard(yard.account, found[0], "globex")
    for thing in found:
        assert yard.provider.discard(yard.account, thing, "acme"), thing
    assert yard.living() == []
    assert list(yard.provider.tagged(yard.account, "inst-1", "acme", ["us-east-1"])) == []


def test_inspection_names_each_fault_at_its_pointer(yard: Any) -> None:
    groups = [{"name": "w", "role": "worker", "instance_types": ["t3.large", "x9.huge"]}]
    yard.with_settings(
        key_pair="none", control_plane_instance_type="q1.none", autoscaler_node_groups=groups, vpc_id="vpc-00000000"
    )
    found = {f.pointer: f.warning for f in yard.provider.inspect(yard.work("account"))}
    assert found == {
        "/settings/key_pair": False,
        "/settings/control_plane_instance_type": False,
        "/settings/autoscaler_node_groups/0/instance_types/1": False,
        "/settings/vpc_id": False,
    }


def test_inspection_knows_a_subnet_of_another_vpc_and_another_region(yard: Any) -> None:
    given = _given_vpc(yard)
    other = yard.tenant().client("ec2").create_vpc(CidrBlock="172.21.0.0/16")["Vpc"]["VpcId"]
    yard.with_settings(vpc_id=other, subnet_id=given["private"])
    assert [f.pointer for f in yard.provider.inspect(yard.work("account"))] == ["/settings/subnet_id"]
    west = yard.with_settings(vpc_id="", subnet_id="", region_name="us-west-2")
    west.tenant().client("ec2", region_name="us-west-2").create_key_pair(KeyName="my-key")
    found = list(west.provider.inspect(west.work("account")))
    assert [(f.pointer, f.warning) for f in found] == [("/settings/region_name", True)]


@pytest.mark.parametrize("region", ["us-east-9", "mars-north-1"])
def test_inspection_refuses_a_region_that_aws_does_not_have(yard: Any, region: str) -> None:
    yard.with_settings(region_name=region)
    found = list(yard.provider.inspect(yard.work("account")))
    assert [(f.pointer, f.warning) for f in found] == [
        ("/settings/region_name", True),
        ("/settings/region_name", False),
    ]
    assert region in found[1].detail


def test_the_account_phase_proves_where_the_role_leads(yard: Any) -> None:
    assert yard.ensure("account").message == "AWS account 222222222222"
    yard.account.attributes.pop("role_arn")
    with pytest.raises(CredentialsRevoked):
        yard.provider.ensure("account", yard.work("account"))


def test_the_control_group_decides_the_type(yard: Any) -> None:
    groups = [{"name": "c", "role": "control", "instance_types": ["m5.large"]}]
    yard.with_settings(control_plane_instance_type="t3.large", autoscaler_node_groups=groups)
    facts = yard.create()
    found = yard.tenant().client("ec2").describe_instances(InstanceIds=[facts["instance_id"]])
    assert found["Reservations"][0]["Instances"][0]["InstanceType"] == "m5.large"


def test_a_terminated_machine_is_told_with_its_reason(yard: Any) -> None:
    facts = yard.create()
    yard.tenant().client("ec2").terminate_instances(InstanceIds=[facts["instance_id"]])
    with pytest.raises(VendorRefused, match="terminated"):
        yard.provider.ensure("control_plane", yard.work("control_plane"))
