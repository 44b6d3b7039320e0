"""A cluster on EKS is made once, whatever crashes on the way, and is removed without a trace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.errors import CredentialsRevoked, PermissionDenied, VendorError, VendorUnavailable
from stockyard.providers.clouds.aws.kinds.registry import KINDS
from stockyard.providers.clusters.eks import names
from tests.harness.worlds.memory_kubernetes import MemoryKubernetes
from tests.unit.providers.clusters.eks.conftest import CREATE, DELETE, H100, Run, change


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


def test_parts_that_somebody_took_away_are_named(eks: Any, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    change(eks, node_groups=[{**H100, "fabric": "efa"}])
    run("objects")
    eks.later(3600)
    lines = eks.ledger.lines()
    assert eks.provider.gone_parts(eks.work(""), lines) == []
    kinds = ("launch_template", "node_group", "addon", "pod_identity", "access_entry", "role", "subnet")
    for kind in kinds:
        line = next(line for line in lines if line.kind == kind)
        with monkeypatch.context() as patch:
            patch.setitem(KINDS, kind, replace(KINDS[kind], describe=lambda *_: None))
            patched = eks.provider.gone_parts(eks.work(""), [line])
        assert [part.name for part in patched] == [f"{kind.replace('_', ' ')} {line.vendor_id}"]
    template = next(line for line in lines if line.kind == "launch_template")
    eks.tenant().client("ec2").delete_launch_template(LaunchTemplateId=template.vendor_id)
    parts = eks.provider.gone_parts(eks.work(""), lines)
    assert [(part.line, part.name) for part in parts] == [(template, f"launch template {template.vendor_id}")]


@pytest.mark.parametrize("error", [PermissionDenied("no"), VendorUnavailable("later")])
def test_a_part_that_cannot_be_looked_at_is_not_gone(
    eks: Any, run: Run, monkeypatch: pytest.MonkeyPatch, error: VendorError
) -> None:
    run("network")
    eks.later(3600)

    def describe(*_: Any) -> None:
        raise error

    monkeypatch.setitem(KINDS, "subnet", replace(KINDS["subnet"], describe=describe))
    if isinstance(error, PermissionDenied):
        assert eks.provider.gone_parts(eks.work(""), eks.ledger.lines()) == []
    else:
        with pytest.raises(VendorUnavailable):
            eks.provider.gone_parts(eks.work(""), eks.ledger.lines())


LOST = (
    "vpc/main",
    "nat_gateway/us-east-1a",
    "vpc_endpoint/s3",
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
    assert len(keys) == len(set(keys)) == 37
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
