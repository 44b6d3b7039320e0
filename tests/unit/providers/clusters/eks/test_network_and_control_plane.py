"""The network, the roles, the control plane and the access of a cluster on EKS are made and follow its settings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from moto.iam.models import iam_backends

from local.aws.corrections.eks.eks import eks_backends
from stockyard.errors import VendorRefused
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clusters.eks import control_plane, names
from tests.unit.providers.clusters.eks.conftest import Run, change, subnets
from tests.unit.providers.clusters.eks.test_planning import Prices
from tests.unit.providers.conftest import ACME


def cluster(eks: Any) -> dict[str, Any]:
    described: dict[str, Any] = eks.tenant().client("eks").describe_cluster(name=names.cluster_name(eks.cluster))
    return dict(described["cluster"])


# --- network ----------------------------------------------------------------------------------------------------------


def test_each_zone_has_a_public_and_a_private_subnet(eks: Any, run: Run) -> None:
    run("network")
    by_range = {s["CidrBlock"]: s for s in subnets(eks)}
    assert {cidr: s["AvailabilityZone"] for cidr, s in by_range.items()} == {
        "10.0.0.0/20": "us-east-1a",
        "10.0.16.0/20": "us-east-1b",
        "10.0.32.0/20": "us-east-1c",
        "10.0.48.0/20": "us-east-1a",
        "10.0.64.0/20": "us-east-1b",
        "10.0.80.0/20": "us-east-1c",
    }
    for cidr, subnet in by_range.items():
        tags = {tag["Key"]: tag["Value"] for tag in subnet["Tags"]}
        public = cidr in eks.cluster.settings["subnet_cidrs"]
        assert subnet["MapPublicIpOnLaunch"] is public
        assert ("kubernetes.io/role/elb" in tags, "kubernetes.io/role/internal-elb" in tags) == (public, not public)
        assert tags[f"kubernetes.io/cluster/{names.cluster_name(eks.cluster)}"] == "shared"
    first = {tag["Key"]: tag["Value"] for tag in by_range["10.0.0.0/20"]["Tags"]}
    assert first["Name"] == names.part(eks.cluster, "subnet-us-east-1a")


@pytest.mark.parametrize(("setting", "count"), [("one", 1), ("zone", 3)])
def test_private_subnets_get_out_by_one_gateway_or_by_one_a_zone(eks: Any, run: Run, setting: str, count: int) -> None:
    change(eks, nat_gateways=setting)
    run("network")
    ec2 = eks.tenant().client("ec2")
    gateways = {n["NatGatewayId"]: n["SubnetId"] for n in ec2.describe_nat_gateways()["NatGateways"]}
    zones = {s["SubnetId"]: s["AvailabilityZone"] for s in subnets(eks)}
    public = {s["SubnetId"] for s in subnets(eks) if s["MapPublicIpOnLaunch"]}
    assert len(gateways) == count
    assert set(gateways.values()) <= public
    routes = {}
    for table in ec2.describe_route_tables()["RouteTables"]:
        default = next((r for r in table["Routes"] if r.get("DestinationCidrBlock") == "0.0.0.0/0"), {})
        for association in table["Associations"]:
            routes[association.get("SubnetId")] = default.get("NatGatewayId") or default.get("GatewayId", "")
    for subnet, zone in zones.items():
        if subnet in public:
            assert routes[subnet].startswith("igw-")
        else:
            assert routes[subnet] in gateways
            assert count == 1 or zones[gateways[routes[subnet]]] == zone


def test_zones_of_the_settings_are_used(eks: Any, run: Run) -> None:
    change(eks, zones=["us-east-1d", "us-east-1b"], subnet_cidrs=["10.0.0.0/20", "10.0.16.0/20"])
    run("network")
    assert [s["AvailabilityZone"] for s in subnets(eks)][:2] == ["us-east-1d", "us-east-1b"]


@pytest.mark.parametrize("gateways", ["one", "zone"])
def test_a_plan_calls_the_parts_of_a_network_as_they_are_called(eks: Any, run: Run, gateways: str) -> None:
    cidrs = ["10.0.0.0/20", "10.0.16.0/20"]
    change(eks, zones=["us-east-1d", "us-east-1b"], subnet_cidrs=cidrs, nat_gateways=gateways)
    run("network")
    lines = {(line.kind.replace("_", " "), line.detail["name"]) for line in eks.ledger.lines()}
    names_of_parts = {(kind, name) for kind, name in lines if kind != "address"}
    planned = {(kind, name.partition(" (")[0]) for kind, name in eks.provider.plan(eks.cluster, Prices()).creates}
    kinds = {kind for kind, _ in names_of_parts}
    expected = {(kind, name) for kind, name in planned if kind in kinds}
    assert expected == names_of_parts


# --- identity, control plane and access -------------------------------------------------------------------------------


def test_roles_are_bounded_and_have_policies_of_aws(eks: Any, run: Run) -> None:
    run("identity")
    iam = eks.tenant().client("iam")
    attached = {}
    for key in ("cluster", "node", "efs-csi", "viewer", "operator", "admin"):
        name = f"vantage-{eks.cluster.client_id}-{key}-role"
        role = iam.get_role(RoleName=name)["Role"]
        assert role["Path"] == "/stockyard/"
        assert role["PermissionsBoundary"]["PermissionsBoundaryArn"].startswith(
            f"arn:aws:iam::{ACME}:policy/vantage-eks-boundary-"
        )
        (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
        listing = iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"]
        attached[key] = (statement["Principal"], {policy["PolicyArn"].rpartition("/")[2] for policy in listing})
    own = {"AWS": f"arn:aws:iam::{ACME}:role/stockyard"}
    nodes = {"AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryReadOnly"}
    assert attached == {
        "cluster": ({"Service": "eks.amazonaws.com"}, {"AmazonEKSClusterPolicy"}),
        "node": ({"Service": "ec2.amazonaws.com"}, nodes),
        "efs-csi": ({"Service": "pods.eks.amazonaws.com"}, {"AmazonEFSCSIDriverPolicy"}),
        "viewer": (own, set()),
        "operator": (own, set()),
        "admin": (own, set()),
    }


def test_the_cluster_is_as_modelplane_makes_it(eks: Any, run: Run) -> None:
    run("control_plane")
    described = cluster(eks)
    assert described["version"] == "1.35"
    assert described["accessConfig"] == {
        "authenticationMode": "API_AND_CONFIG_MAP",
        "bootstrapClusterCreatorAdminPermissions": True,
    }
    network = described["resourcesVpcConfig"]
    assert (network["endpointPublicAccess"], network["endpointPrivateAccess"]) == (True, True)
    assert network["publicAccessCidrs"] == ["0.0.0.0/0"]
    assert set(network["subnetIds"]) == {s["SubnetId"] for s in subnets(eks)}
    assert described["upgradePolicy"] == {"supportType": "STANDARD"}
    assert described["kubernetesNetworkConfig"]["serviceIpv4Cidr"] == "172.20.0.0/16"
    assert eks.cluster.endpoint == described["endpoint"]
    assert eks.cluster.certificate_authority == described["certificateAuthority"]["data"]


@pytest.mark.parametrize("zones", [("us-east-1a", "us-east-1b"), ("us-east-1b",)])
def test_a_zone_that_eks_refuses_has_no_control_plane_and_may_have_nodes(
    eks: Any, run: Run, monkeypatch: pytest.MonkeyPatch, zones: tuple[str, ...]
) -> None:
    """EKS itself is the second source of which zones have none: the first is a list that grows old."""
    call = Calls.call

    def refusing(self: Calls, service: str, operation: str, **parameters: Any) -> Any:
        if operation == "create_cluster" and len(parameters["resourcesVpcConfig"]["subnetIds"]) > 4:
            text = (
                "Cannot create cluster because us-east-1c does not currently have sufficient capacity. Retry and choose"
            )
            raise VendorRefused(
                f"{text} from these availability zones: {', '.join(zones)}", code="UnsupportedAvailabilityZoneException"
            )
        return call(self, service, operation, **parameters)

    monkeypatch.setattr(Calls, "call", refusing)
    run("identity")
    if len(zones) < 2:
        with pytest.raises(VendorRefused, match="us-east-1b") as caught:
            run("control_plane")
        assert "Name zones" in caught.value.hint
        return
    run("control_plane")
    here = {s["SubnetId"] for s in subnets(eks) if s["AvailabilityZone"] in zones}
    assert set(cluster(eks)["resourcesVpcConfig"]["subnetIds"]) == here
    assert len(here) == 4


def test_endpoint_list_and_support_and_version_follow_one_after_another(eks: Any, run: Run) -> None:
    change(eks, public_access_cidrs=["192.0.2.0/24"])
    eks.cluster = replace(eks.cluster, kubernetes_version="1.34")
    run("control_plane")
    assert cluster(eks)["resourcesVpcConfig"]["publicAccessCidrs"] == ["192.0.2.0/24"]
    change(eks, public_access_cidrs=[], support="extended")
    eks.cluster = replace(eks.cluster, kubernetes_version="1.36")
    eks.ensure("control_plane")
    described = cluster(eks)
    assert described["resourcesVpcConfig"]["publicAccessCidrs"] == ["0.0.0.0/0"]
    assert described["upgradePolicy"] == {"supportType": "EXTENDED"}
    assert described["version"] == "1.36"
    updates = eks.tenant().client("eks").list_updates(name=described["name"])["updateIds"]
    assert len(updates) == 4, "the list, the support, and two minors"


def test_a_version_never_goes_down() -> None:
    assert control_plane.next_version("1.34", "1.34") == ""
    assert control_plane.next_version("1.34", "1.36") == "1.35"
    with pytest.raises(VendorRefused, match=r"1\.35 cannot become 1\.34"):
        control_plane.next_version("1.35", "1.34")


def test_an_update_that_failed_is_told_and_tried_anew(eks: Any, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run("control_plane")
    change(eks, public_access_cidrs=["192.0.2.0/24"])
    original, statuses, tokens = Calls.call, ["InProgress", "Failed"], []

    def call(self: Calls, service: str, operation: str, **parameters: Any) -> Any:
        if operation == "update_cluster_config":
            tokens.append(parameters["clientRequestToken"])
            return {"update": {"id": f"u-{len(tokens)}"}}
        if operation == "describe_update":
            errors = [{"errorMessage": "no free addresses"}]
            return {"update": {"status": statuses.pop(0), "type": "EndpointAccessUpdate", "errors": errors}}
        return original(self, service, operation, **parameters)

    monkeypatch.setattr(Calls, "call", call)
    for _ in range(2):
        assert not eks.provider.ensure("control_plane", eks.work("control_plane")).done
    with pytest.raises(VendorRefused, match="no free addresses"):
        eks.provider.ensure("control_plane", eks.work("control_plane"))
    eks.provider.ensure("control_plane", eks.work("control_plane"))
    assert len(set(tokens)) == 2


def entry_ids(eks: Any) -> dict[str, str | None]:
    """Roles that the entries let in, by the end of each entry's name, as EKS keeps it."""
    entries = eks_backends[ACME]["us-east-1"].clusters[names.cluster_name(eks.cluster)].entries
    return {name.split("-")[-2]: entry.principal_id for name, entry in entries.items() if "/stockyard/" in name}


def make_roles_anew(eks: Any) -> None:
    """Somebody deletes all roles of the cluster, and the next change makes them again."""
    roles = iam_backends[ACME]["aws"].roles
    for key in [key for key, role in roles.items() if role.path == "/stockyard/"]:
        del roles[key]
    eks.later(3600)
    eks.ensure("identity")
    eks.later(3600)


def test_entries_of_roles_that_were_made_anew_are_made_anew(eks: Any, run: Run) -> None:
    run("node_groups")
    eks.later(3600)

    def role_ids() -> dict[str, str]:
        roles = [role for role in iam_backends[ACME]["aws"].roles.values() if role.path == "/stockyard/"]
        return {role.name.split("-")[-2]: role.id for role in roles}

    def renewed() -> tuple[dict[str, str | None], int]:
        for _ in range(3):
            if eks.ensure("access").done:
                break
            eks.later(60)
        return entry_ids(eks), eks.ledger.writes

    before, writes = entry_ids(eks), eks.ledger.writes
    assert renewed() == (before, writes), "nothing is made anew while the roles are the same"
    for _ in range(2):
        make_roles_anew(eks)
        assert not set(entry_ids(eks).values()) & set(role_ids().values()), "else nobody is locked out"
        after, _ = renewed()
        assert after == {name: role_ids()[name] for name in ("viewer", "operator", "admin", "node")}
        entry = eks_backends[ACME]["us-east-1"].clusters[names.cluster_name(eks.cluster)].entries
        assert {each.document["type"] for name, each in entry.items() if "-node-" in name} == {"EC2_LINUX"}
    assert all(line.state == "made" for line in eks.ledger.lines())


@pytest.mark.parametrize("lost", ["access_entry/viewer", "access_entry/node"])
def test_a_crash_while_an_entry_is_made_anew_locks_nobody_out(eks: Any, run: Run, lost: str) -> None:
    run("node_groups")
    make_roles_anew(eks)
    eks.ledger.fail_made = lost
    with pytest.raises(RuntimeError):
        eks.ensure("access")
    eks.later(120)
    assert eks.ensure("access").done
    roles = {role.id for role in iam_backends[ACME]["aws"].roles.values()}
    assert set(entry_ids(eks).values()) <= roles


def test_an_entry_of_an_earlier_release_is_made_anew_after_a_younger_role(eks: Any, run: Run) -> None:
    run("node_groups")
    eks.later(3600)
    for name, line in eks.ledger.all.items():
        if line.kind == "access_entry":
            eks.ledger.all[name] = replace(line, detail={key: line.detail[key] for key in ("name", "since")})
    before = entry_ids(eks)
    assert eks.ensure("access").done
    assert entry_ids(eks) == before
    make_roles_anew(eks)
    assert eks.ensure("access").done
    assert not set(entry_ids(eks).values()) & set(before.values())


def test_people_have_the_policy_of_their_role_and_no_other(eks: Any, run: Run) -> None:
    run("access")
    client, name = eks.tenant().client("eks"), names.cluster_name(eks.cluster)

    def policies() -> dict[str, set[str]]:
        by_role = {}
        for role in ("viewer", "operator", "admin"):
            principal = f"arn:aws:iam::{ACME}:role/stockyard/vantage-{eks.cluster.client_id}-{role}-role"
            listing = client.list_associated_access_policies(clusterName=name, principalArn=principal)
            by_role[role] = {item["policyArn"].rpartition("/")[2] for item in listing["associatedAccessPolicies"]}
        return by_role

    own = {"viewer": {"AmazonEKSViewPolicy"}, "operator": {"AmazonEKSEditPolicy"}}
    own["admin"] = {"AmazonEKSClusterAdminPolicy"}
    assert policies() == own
    viewer = f"arn:aws:iam::{ACME}:role/stockyard/vantage-{eks.cluster.client_id}-viewer-role"
    client.associate_access_policy(
        clusterName=name,
        principalArn=viewer,
        policyArn="arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy",
        accessScope={"type": "cluster"},
    )
    eks.ensure("access")
    assert policies() == own
