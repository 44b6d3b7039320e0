"""A cluster on EKS is made phase by phase, brought to its settings again, and removed without a trace."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from stockyard.errors import CredentialsRevoked, VendorRefused, VendorUnavailable
from stockyard.ports.clusters import AdmitsPacks
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clusters.eks import addons, control_plane, names
from tests.harness.memory_kubernetes import MemoryKubernetes
from tests.unit.providers.clusters.eks.conftest import CREATE, DELETE, H100, settings
from tests.unit.providers.clusters.eks.test_planning import Prices
from tests.unit.providers.conftest import ACME

Run = Callable[[str], None]


def change(eks: Any, **values: Any) -> None:
    eks.cluster = replace(eks.cluster, settings=settings(**values))
    eks.ledger.cluster = eks.cluster


def cluster(eks: Any) -> dict[str, Any]:
    described: dict[str, Any] = eks.tenant().client("eks").describe_cluster(name=names.cluster_name(eks.cluster))
    return dict(described["cluster"])


def subnets(eks: Any) -> list[dict[str, Any]]:
    listing = eks.tenant().client("ec2").describe_subnets()["Subnets"]
    return sorted((s for s in listing if not s["DefaultForAz"]), key=lambda s: s["CidrBlock"])


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


# --- add-ons and storage ----------------------------------------------------------------------------------------------


def installed(eks: Any) -> dict[str, str]:
    client, name = eks.tenant().client("eks"), names.cluster_name(eks.cluster)
    described = (
        client.describe_addon(clusterName=name, addonName=addon)["addon"]
        for addon in client.list_addons(clusterName=name)["addons"]
    )
    return {item["addonName"]: item["addonVersion"] for item in described}


def test_addons_have_their_default_versions_and_the_files_an_identity(eks: Any, run: Run) -> None:
    run("addons")
    assert set(installed(eks)) == {*addons.ALWAYS, "aws-efs-csi-driver"}
    client, name = eks.tenant().client("eks"), names.cluster_name(eks.cluster)
    (association,) = client.list_pod_identity_associations(clusterName=name)["associations"]
    assert (association["namespace"], association["serviceAccount"]) == ("kube-system", "efs-csi-controller-sa")
    configuration = client.describe_addon(clusterName=name, addonName="vpc-cni")["addon"]["configurationValues"]
    marks = json.loads(json.loads(configuration)["env"]["ADDITIONAL_ENI_TAGS"])
    assert marks["stockyard:resource"] == eks.cluster.id


def test_what_nodes_need_to_become_ready_is_there_before_them(eks: Any, run: Run) -> None:
    run("access")
    outcome = eks.provider.ensure("node_groups", eks.work("node_groups"))
    assert not outcome.done
    assert set(installed(eks)) == {"vpc-cni", "kube-proxy", "eks-pod-identity-agent"}
    assert not [line for line in eks.ledger.lines() if line.kind == "node_group"]
    eks.ensure("node_groups")
    assert set(installed(eks)) == {"vpc-cni", "kube-proxy", "eks-pod-identity-agent"}


def test_a_version_of_the_settings_wins_and_what_fits_stays(eks: Any, run: Run) -> None:
    run("addons")
    before = installed(eks)
    versions = addons.versions(Calls(eks.provider._sessions.of(eks.account, "op_1"), "us-east-1"), "coredns", "1.35")
    other = next(version for version in versions if version != before["coredns"])
    change(eks, addon_versions={"coredns": other})
    eks.ensure("addons")
    assert installed(eks) == {**before, "coredns": other}
    change(eks)
    eks.ensure("addons")
    assert installed(eks) == {**before, "coredns": other}


def test_a_new_version_of_the_network_keeps_its_configuration(eks: Any, run: Run) -> None:
    run("addons")
    client, place = eks.tenant().client("eks"), {"clusterName": names.cluster_name(eks.cluster), "addonName": "vpc-cni"}
    before = client.describe_addon(**place)["addon"]
    versions = addons.versions(Calls(eks.provider._sessions.of(eks.account, "op_1"), "us-east-1"), "vpc-cni", "1.35")
    change(eks, addon_versions={"vpc-cni": next(v for v in versions if v != before["addonVersion"])})
    eks.ensure("addons")
    after = client.describe_addon(**place)["addon"]
    assert after["addonVersion"] != before["addonVersion"]
    assert after["configurationValues"] == before["configurationValues"]


def test_an_addon_without_a_node_is_waited_for_with_the_reason(eks: Any, run: Run) -> None:
    change(eks, node_groups=[{"name": "system", "role": "system", "instance_type": "m6i.large", "count": 0}])
    run("node_groups")
    for _ in range(3):
        outcome = eks.provider.ensure("addons", eks.work("addons"))
        eks.later(outcome.wait_seconds)
    assert not outcome.done
    assert "coredns is DEGRADED: " in outcome.message
    assert "EKS gives no reason" not in outcome.message


def test_files_are_encrypted_and_reached_from_the_vpc(eks: Any, run: Run) -> None:
    run("storage")
    efs, ec2 = eks.tenant().client("efs"), eks.tenant().client("ec2")
    (system,) = efs.describe_file_systems()["FileSystems"]
    assert (system["Encrypted"], system["ThroughputMode"]) == (True, "elastic")
    targets = efs.describe_mount_targets(FileSystemId=system["FileSystemId"])["MountTargets"]
    private = {s["SubnetId"] for s in subnets(eks) if not s["MapPublicIpOnLaunch"]}
    assert {target["SubnetId"] for target in targets} == private
    group_id = eks.ledger.find("security_group", "efs").vendor_id
    groups = efs.describe_mount_target_security_groups(MountTargetId=targets[0]["MountTargetId"])
    assert groups["SecurityGroups"] == [group_id]
    (group,) = ec2.describe_security_groups(GroupIds=[group_id])["SecurityGroups"]
    assert group["GroupName"] == f"{eks.cluster.client_id}-efs"
    (rule,) = group["IpPermissions"]
    assert (rule["IpProtocol"], rule["FromPort"], rule["ToPort"]) == ("tcp", 2049, 2049)
    assert [cidr["CidrIp"] for cidr in rule["IpRanges"]] == ["10.0.0.0/16"]


def test_a_cluster_without_shared_storage_has_none(eks: Any, run: Run, api: MemoryKubernetes) -> None:
    change(eks, shared_storage=False)
    run("storage")
    assert eks.ensure("storage").facts == {"skipped": "true"}
    assert set(installed(eks)) == set(addons.ALWAYS)
    assert eks.tenant().client("efs").describe_file_systems()["FileSystems"] == []
    eks.ensure("objects")
    assert api.objects == {}


# --- objects, tokens and nodes ----------------------------------------------------------------------------------------


def test_objects_are_applied_by_a_token_of_the_tenants_role(eks: Any, run: Run, api: MemoryKubernetes) -> None:
    change(eks, node_groups=[{**H100, "fabric": "efa"}])
    run("storage")
    work = replace(eks.work("objects"), agent=({"kind": "Namespace", "metadata": {"name": "stockyard-system"}},))
    assert eks.provider.ensure("objects", work).done
    assert api.asked == [(eks.cluster.endpoint, eks.cluster.certificate_authority)]
    token = api.token()
    assert token.startswith("k8s-aws-v1.")
    encoded = token.removeprefix("k8s-aws-v1.")
    url = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
    assert "x-k8s-aws-id" in parse_qs(urlsplit(url).query)["X-Amz-SignedHeaders"][0]
    assert ("Namespace", "", "stockyard-system") in api.objects
    storage_class = api.objects["StorageClass", "", "modelplane-rwx-efs"]
    assert storage_class["parameters"] == {
        "provisioningMode": "efs-ap",
        "fileSystemId": eks.ledger.find("file_system", "efs").vendor_id,
        "directoryPerms": "700",
    }
    assert (storage_class["provisioner"], storage_class["volumeBindingMode"]) == ("efs.csi.aws.com", "Immediate")
    plugin = api.objects["DaemonSet", "kube-system", "nvidia-device-plugin-daemonset"]
    (term,) = plugin["spec"]["template"]["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": "modelplane.ai/gpu", "operator": "Exists"}]
    driver = api.objects["DaemonSet", "kube-system", "aws-dranet"]
    tolerations = driver["spec"]["template"]["spec"]["tolerations"]
    assert {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"} in tolerations


def test_packs_are_applied_by_an_account_that_the_tenants_role_makes(eks: Any, run: Run, api: MemoryKubernetes) -> None:
    run("control_plane")
    assert isinstance(eks.provider, AdmitsPacks)
    assert eks.provider.packs_api(eks.work("profile")) is api
    assert api.asked == [(eks.cluster.endpoint, eks.cluster.certificate_authority)] * 2
    admin, account = api.users
    assert str(admin).startswith("k8s-aws-v1.")
    assert account == "token-1"
    assert api.closed == 1, "the admin's, and not what packs are applied by"
    assert ("ClusterRoleBinding", "", "stockyard-packs") in api.objects
    eks.provider.forget_packs(eks.work("profile"))
    assert str(api.users[2]).startswith("k8s-aws-v1.")
    assert ("ClusterRoleBinding", "", "stockyard-packs") not in api.objects


def test_packs_of_a_cluster_without_an_endpoint_are_refused(eks: Any, api: MemoryKubernetes) -> None:
    for call in (eks.provider.packs_api, eks.provider.forget_packs):
        with pytest.raises(VendorRefused, match="endpoint is not known"):
            call(eks.work("profile"))
    assert api.asked == []


def test_drivers_of_devices_come_only_with_a_group_that_needs_them(eks: Any, run: Run, api: MemoryKubernetes) -> None:
    run("objects")
    assert {kind for kind, _, _ in api.objects} == {"StorageClass"}


def test_a_cluster_that_admits_only_some_says_why_it_is_not_reached(eks: Any, run: Run, api: MemoryKubernetes) -> None:
    change(eks, public_access_cidrs=["192.0.2.0/24"])
    run("storage")
    api.error = VendorUnavailable("no answer")
    with pytest.raises(VendorUnavailable) as raised:
        eks.provider.ensure("objects", eks.work("objects"))
    assert "public_access_cidrs" in raised.value.hint


def test_tokens_of_a_role_are_made_by_its_own_session(eks: Any, run: Run) -> None:
    run("access")
    lines = eks.ledger.writes
    token = eks.provider.mint(eks.work("tokens"), "viewer")
    assert token.token.startswith("k8s-aws-v1.")
    assert 0 < (token.expires_at - eks.now).total_seconds() <= 900
    assert eks.ledger.writes == lines
    assert "k8s-aws" not in repr(token)
    assert eks.provider.secret_name(eks.cluster) == names.child_name("My-Cluster", "kubeconfig")


def node(pool: str = "system", group: str | None = "system", provider: str = "aws:///us-east-1a/i-1") -> dict[str, Any]:
    labels = {"modelplane.ai/pool": pool, **({"eks.amazonaws.com/nodegroup": group} if group else {})}
    return {"name": "ip-10-0-48-1.ec2.internal", "provider_id": provider, "labels": labels}


@pytest.mark.parametrize(
    ("observed_node", "group"),
    [
        (node(), ("system", "i-1")),
        (node(group="system-generation-2-0a1b2"), ("system", "i-1")),
        (node(pool="other"), None),
        (node(group=None), None),
        (node(provider=""), None),
    ],
)
def test_the_pool_of_a_node(eks: Any, observed_node: dict[str, Any], group: tuple[str, str] | None) -> None:
    assert eks.provider.group_of_node(eks.cluster, observed_node) == group


# --- whole lives ------------------------------------------------------------------------------------------------------


def test_a_cluster_is_made_once_and_leaves_nothing(eks: Any, run: Run) -> None:
    change(eks, node_groups=[{**H100, "fabric": "efa"}], nat_gateways="zone")
    run("objects")
    lines, writes = eks.ledger.lines(), eks.ledger.writes
    eks.later(3600)
    run("objects")
    assert (eks.ledger.lines(), eks.ledger.writes) == (lines, writes)
    for phase in DELETE:
        eks.remove(phase)
    assert eks.ledger.lines() == []
    assert eks.living() == []
    client = eks.tenant()
    assert client.client("eks").list_clusters()["clusters"] == []
    assert client.client("efs").describe_file_systems()["FileSystems"] == []
    assert client.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"] == []


LOST = (
    "vpc/main",
    "nat_gateway/us-east-1a",
    "role/viewer",
    "eks_cluster/main",
    "security_group/cluster",
    "access_entry/viewer",
    "node_group/system",
    "addon/coredns",
    "pod_identity/aws-efs-csi-driver",
    "file_system/efs",
    "mount_target/us-east-1b",
)


@pytest.mark.parametrize("lost", LOST)
def test_a_crash_between_call_and_record_is_found_again_and_undone(eks: Any, run: Run, lost: str) -> None:
    eks.ledger.fail_made = lost
    with pytest.raises(RuntimeError):
        run("objects")
    eks.later(120)
    for phase in DELETE:
        eks.remove(phase)
    assert eks.living() == []
    assert eks.tenant().client("eks").list_clusters()["clusters"] == []
    assert eks.tenant().client("efs").describe_file_systems()["FileSystems"] == []


@pytest.mark.parametrize("lost", LOST)
def test_a_crash_between_call_and_record_makes_nothing_twice(eks: Any, run: Run, lost: str) -> None:
    eks.ledger.fail_made = lost
    with pytest.raises(RuntimeError):
        run("objects")
    eks.later(120)
    run("objects")
    keys = [(line.kind, line.key) for line in eks.ledger.lines()]
    assert len(keys) == len(set(keys)) == 35
    assert {line.state for line in eks.ledger.lines()} == {"made"}


def test_load_balancers_of_services_go_first(eks: Any, run: Run, api: MemoryKubernetes) -> None:
    run("objects")
    service = {"kind": "Service", "metadata": {"name": "web", "namespace": "default"}, "spec": {"type": "LoadBalancer"}}
    inner = {"kind": "Service", "metadata": {"name": "in", "namespace": "default"}, "spec": {"type": "ClusterIP"}}
    for document in (service, inner):
        api.apply(document)
    outcome = eks.provider.remove("leftovers", eks.work("leftovers"))
    assert not outcome.done
    assert "default/web" in outcome.message
    assert ("Service", "default", "web") not in api.objects
    assert ("Service", "default", "in") in api.objects
    assert eks.provider.remove("leftovers", eks.work("leftovers")).done


def test_a_cluster_that_does_not_answer_is_removed_all_the_same(eks: Any, run: Run, api: MemoryKubernetes) -> None:
    run("objects")
    api.error = VendorUnavailable("no answer")
    outcome = eks.provider.remove("leftovers", eks.work("leftovers"))
    assert outcome.done
    assert outcome.message.endswith("so they are deleted in the cloud: no answer")


def test_interfaces_that_pods_left_behind_go_with_the_groups(eks: Any, run: Run) -> None:
    run("node_groups")
    ec2 = eks.tenant().client("ec2")
    marks = [
        {"Key": "stockyard:installation", "Value": "inst-1"},
        {"Key": "stockyard:tenant", "Value": "acme"},
        {"Key": "stockyard:resource", "Value": eks.cluster.id},
    ]
    subnet = eks.ledger.find("subnet", "private-0").vendor_id
    own = ec2.create_network_interface(
        SubnetId=subnet, TagSpecifications=[{"ResourceType": "network-interface", "Tags": marks}]
    )["NetworkInterface"]["NetworkInterfaceId"]
    other = ec2.create_network_interface(SubnetId=subnet)["NetworkInterface"]["NetworkInterfaceId"]
    eks.remove("node_groups")
    remaining = {item["NetworkInterfaceId"] for item in ec2.describe_network_interfaces()["NetworkInterfaces"]}
    assert own not in remaining
    assert other in remaining


def test_an_account_that_the_role_does_not_lead_into_is_refused(eks: Any) -> None:
    eks.account = replace(eks.account, attributes={})
    with pytest.raises(CredentialsRevoked):
        eks.ensure("account")


def test_phases_are_those_of_the_table() -> None:
    assert CREATE[0] == "account"
    assert set(DELETE) - {"leftovers"} == set(CREATE) - {"account"}


def test_a_long_name_is_cut_where_iam_takes_no_longer_one() -> None:
    client_id = f"{'a' * 33}-0123456789ab"
    assert names.role_name("vantage", client_id, "node-role") == f"vantage-{client_id}-node-role"
    for suffix in ("operator-role", "cluster-role"):
        name = names.role_name("vantage", client_id, suffix)
        assert len(name) == 64
        assert name.endswith(f"-0123456789ab-{suffix}")
