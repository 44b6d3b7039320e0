"""The add-ons, the shared storage, the objects and the tokens of a cluster on EKS."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from stockyard.errors import VendorRefused, VendorUnavailable
from stockyard.providers.clouds.aws import cluster_tokens
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clusters.eks import addons, names
from tests.harness.worlds.memory_kubernetes import MemoryKubernetes
from tests.unit.providers.clusters.eks.conftest import H100, Run, change, subnets

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
    client, addon_key = (
        eks.tenant().client("eks"),
        {"clusterName": names.cluster_name(eks.cluster), "addonName": "vpc-cni"},
    )
    before = client.describe_addon(**addon_key)["addon"]
    versions = addons.versions(Calls(eks.provider._sessions.of(eks.account, "op_1"), "us-east-1"), "vpc-cni", "1.35")
    change(eks, addon_versions={"vpc-cni": next(v for v in versions if v != before["addonVersion"])})
    eks.ensure("addons")
    after = client.describe_addon(**addon_key)["addon"]
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
    assert "StorageClass" not in {kind for kind, _, _ in api.objects}


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
    terms = plugin["spec"]["template"]["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"]
    labels = [expression["key"] for term in terms for expression in term["matchExpressions"]]
    assert labels == ["modelplane.ai/gpu", "karpenter.k8s.aws/instance-gpu-name"], "of groups, and of pools"
    driver = api.objects["DaemonSet", "kube-system", "aws-dranet"]
    tolerations = driver["spec"]["template"]["spec"]["tolerations"]
    assert {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"} in tolerations


def test_packs_are_applied_by_an_account_that_the_tenants_role_makes(eks: Any, run: Run, api: MemoryKubernetes) -> None:
    run("control_plane")
    assert eks.provider.packs_admin is eks.provider
    eks.provider.packs_api(eks.work("profile"))
    assert api.asked == [(eks.cluster.endpoint, eks.cluster.certificate_authority)] * 2
    admin, account = api.users
    assert str(admin).startswith("k8s-aws-v1.")
    assert account == "token-1"
    assert api.closed == 1, "the admin's, and not what packs are applied by"
    assert ("ClusterRoleBinding", "", "stockyard-packs-account") in api.objects
    eks.provider.forget_packs(eks.work("profile"))
    assert str(api.users[2]).startswith("k8s-aws-v1.")
    assert ("ClusterRoleBinding", "", "stockyard-packs-account") not in api.objects


def test_packs_of_a_cluster_without_an_endpoint_are_refused(eks: Any, api: MemoryKubernetes) -> None:
    for call in (eks.provider.packs_api, eks.provider.forget_packs):
        with pytest.raises(VendorRefused, match="endpoint is not known"):
            call(eks.work("profile"))
    assert api.asked == []


def test_the_driver_of_efa_comes_only_with_a_group_that_needs_it(eks: Any, run: Run, api: MemoryKubernetes) -> None:
    run("objects")
    assert {(kind, name) for kind, _, name in api.objects} == {
        ("StorageClass", "modelplane-rwx-efs"),
        ("DaemonSet", "nvidia-device-plugin-daemonset"),
        *((f"MutatingAdmissionPolicy{part}", "stockyard-balancer-tags") for part in ("", "Binding")),
    }


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


def test_a_person_who_asks_again_is_served_by_the_same_session(
    eks: Any, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each session costs a call in the tenant's account, at its rate, and a line of its trail."""
    run("access")
    role_keys, sessions = cluster_tokens.role_keys, list[tuple[str, str]]()

    def counting(calls: Any, arn: str, session: str) -> Any:
        sessions.append((arn, session))
        return role_keys(calls, arn, session)

    monkeypatch.setattr(cluster_tokens, "role_keys", counting)
    now = eks.now
    for role, actor, seconds in (
        ("viewer", "user:ann", 0),
        ("viewer", "user:ann", 200),
        ("viewer", "user:bob", 200),
        ("admin", "user:ann", 200),
        ("viewer", "user:ann", 300),
    ):
        work = replace(eks.work("tokens"), session=actor, now=now + timedelta(seconds=seconds))
        token = eks.provider.mint(work, role)
        assert token.expires_at > work.now + timedelta(minutes=5)
    assert len(sessions) == 4
    assert len(set(sessions)) == 3


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
