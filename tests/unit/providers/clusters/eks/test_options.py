"""Options of a cluster on EKS: volumes of EBS, logs of the control plane, protection."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from local.aws.permissions.policies import Ask, allowed_by
from stockyard.domain.models.base import read
from stockyard.errors import InvalidInput
from stockyard.providers.clouds.aws.policies import template_parts, template_versions, tenant_template
from stockyard.providers.clusters.eks import addons, names
from stockyard.providers.clusters.eks.settings import EksSettings
from tests.harness import tenant_stack
from tests.harness.asks import recorded_asks
from tests.harness.policies import refused
from tests.harness.worlds.memory_kubernetes import MemoryKubernetes
from tests.harness.worlds.stage import Stage
from tests.unit.providers.clusters.eks.conftest import DELETE, Run, change
from tests.unit.providers.clusters.eks.test_planning import Prices
from tests.unit.providers.conftest import ACME

MARK = {"stockyard:installation": "inst-1"}


def in_aws(value: Any) -> Any:
    return json.loads(json.dumps(tenant_stack.handed_to_iam(value)).replace("aws-us-gov", "aws"))


def described(eks: Any) -> dict[str, Any]:
    client = eks.tenant().client("eks")
    return dict(client.describe_cluster(name=names.cluster_name(eks.cluster))["cluster"])


def test_volumes_of_pods_have_a_driver_with_a_role_of_its_own(eks: Any, run: Run, api: MemoryKubernetes) -> None:
    """Made, and switched on later, with what the template grants."""
    template = tenant_template.render(eks.account, "inst-1", Stage())
    with recorded_asks(ACME) as asks:
        run("objects")
        assert addons.VOLUMES not in addons.addons(eks.cluster)
        change(eks, block_storage=True)
        for phase in ("identity", "addons", "objects"):
            eks.ensure(phase)
    assert refused({"tenant": asks}, {"tenant": in_aws(tenant_stack.statements(template))}) == []
    client, name = eks.tenant().client("eks"), names.cluster_name(eks.cluster)
    made_with = client.describe_addon(clusterName=name, addonName=addons.VOLUMES)["addon"]["configurationValues"]
    assert json.loads(made_with)["controller"]["k8sTagClusterId"] == name
    assert json.loads(made_with)["controller"]["extraVolumeTags"]["stockyard:installation"] == "inst-1"
    listing = client.list_pod_identity_associations(clusterName=name)["associations"]
    assert {entry["serviceAccount"] for entry in listing} == {"ebs-csi-controller-sa", "efs-csi-controller-sa"}
    storage_class = api.objects["StorageClass", "", "gp3"]
    assert storage_class["metadata"]["annotations"] == {"storageclass.kubernetes.io/is-default-class": "true"}
    iam, role = eks.tenant().client("iam"), eks.ledger.find("role", "ebs-csi").vendor_id
    assert "-node-boundary-" in iam.get_role(RoleName=role)["Role"]["PermissionsBoundary"]["PermissionsBoundaryArn"]
    own = iam.get_role_policy(RoleName=role, PolicyName="ebs-csi")["PolicyDocument"]["Statement"]
    bound = in_aws(template["Resources"]["Boundary"]["Properties"]["PolicyDocument"]["Statement"])
    volume = f"arn:aws:ec2:us-east-1:{ACME}:volume/vol-1"
    for cluster, allowed in ((name, True), ("vantage-another", False)):
        tags = {f"aws:RequestTag/{key}": value for key, value in MARK.items()}
        ask = Ask("ec2:CreateVolume", volume, {**tags, "aws:RequestTag/ebs.csi.aws.com/cluster-name": cluster})
        assert bool(allowed_by(own, ask)) is allowed
        assert allowed_by(bound, ask)
    for phase in DELETE:
        eks.remove(phase)
    assert [line for line in eks.ledger.lines() if line.kind in ("role", "addon", "pod_identity")] == []


def test_a_driver_needs_the_part_of_the_template_with_its_boundary(eks: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = frozenset({template_parts.EKS, template_parts.FILES})
    own = template_versions.Deployed(template_versions.CURRENT, parts)
    monkeypatch.setattr(template_versions, "deployed", lambda *_: own)
    change(eks, block_storage=True)
    (fault, *_) = eks.provider.inspect(eks.work("account"))
    assert "Kubeadm=yes" in fault.detail
    assert not fault.warning


def test_a_driver_cannot_be_switched_off(eks: Any) -> None:
    before = {**eks.cluster.settings, "block_storage": True}
    faults = read(EksSettings, {"region_name": "us-east-1"}).change_faults(before)
    assert [fault.pointer for fault in faults] == ["/block_storage"]


def test_a_plan_names_the_driver(eks: Any) -> None:
    change(eks, block_storage=True)
    creates = eks.provider.plan(eks.cluster, Prices()).creates
    assert ("add-on", addons.VOLUMES) in creates
    assert ("storage class", "gp3") in creates


def test_logs_of_the_control_plane_follow_the_settings(eks: Any, run: Run) -> None:
    def logs() -> set[str]:
        entries = described(eks)["logging"]["clusterLogging"]
        return {kind for entry in entries if entry["enabled"] for kind in entry["types"]}

    change(eks, control_plane_logs=["audit", "api"])
    run("control_plane")
    assert logs() == {"audit", "api"}
    for kinds in (["scheduler"], []):
        change(eks, control_plane_logs=kinds)
        eks.ensure("control_plane")
        assert logs() == set(kinds)
    with pytest.raises(InvalidInput):
        read(EksSettings, {"region_name": "us-east-1", "control_plane_logs": ["api", "api"]})


def test_a_protected_cluster_is_deleted_by_stockyard_and_by_nobody_else(eks: Any, run: Run) -> None:
    change(eks, deletion_protection=True)
    run("control_plane")
    client, name = eks.tenant().client("eks"), names.cluster_name(eks.cluster)
    with pytest.raises(client.exceptions.InvalidRequestException, match="protection"):
        client.delete_cluster(name=name)
    change(eks)
    eks.ensure("control_plane")
    assert not described(eks)["deletionProtection"]
    change(eks, deletion_protection=True)
    eks.ensure("control_plane")
    eks.later(120)
    eks.remove("control_plane")
    with pytest.raises(client.exceptions.ResourceNotFoundException):
        client.describe_cluster(name=name)


def test_a_machine_of_a_group_takes_all_tags_of_an_owner(eks: Any, run: Run) -> None:
    """Fifty, with ours and EKS's."""
    own_tags = {f"key-{number:02}": "v" for number in range(30)}
    change(eks, node_groups=[{"name": "workers", "role": "system", "instance_type": "m6i.large"}])
    eks.cluster = eks.ledger.cluster = replace(eks.cluster, tags=own_tags)
    run("node_groups")
    reservations = eks.tenant().client("ec2").describe_instances()["Reservations"]
    machines = [machine for reservation in reservations for machine in reservation["Instances"]]
    carried = [tag["Key"] for machine in machines for tag in machine["Tags"] if machine is machines[0]]
    assert set(own_tags) <= set(carried)
    of_eks = ("k8s.io/cluster-autoscaler/enabled", "k8s.io/cluster-autoscaler/name", "kubernetes.io/cluster/name")
    keys = {*(key for key in carried if not key.startswith("aws:")), *of_eks}
    assert len(keys) + len({"stockyard:key", "stockyard:since"} - keys) <= 50
