"""Node groups are made as Modelplane makes them, brought to the settings where EKS can, and else replaced."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS

from local.aws.corrections.pace import paced
from local.aws.corrections.scarcity import limited
from stockyard.errors import InsufficientCapacity, VendorError, VendorRefused
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.catalog import offerings
from stockyard.providers.clusters.eks import names
from stockyard.providers.clusters.eks.nodes.node_groups import Generation
from tests.unit.providers.clusters.eks.conftest import H100, settings
from tests.unit.providers.conftest import START

Run = Callable[[str], None]
WORKERS = {"name": "workers", "role": "system", "instance_type": "m6i.large"}
EFA = {**H100, "fabric": "efa"}


def change(eks: Any, *groups: dict[str, Any], **values: Any) -> None:
    eks.cluster = replace(eks.cluster, settings=settings(node_groups=list(groups), **values))
    eks.ledger.cluster = eks.cluster


def group(eks: Any, name: str) -> dict[str, Any]:
    client = eks.tenant().client("eks")
    described: dict[str, Any] = client.describe_nodegroup(
        clusterName=names.cluster_name(eks.cluster), nodegroupName=name
    )["nodegroup"]
    return described


def groups(eks: Any) -> set[str]:
    client = eks.tenant().client("eks")
    return set(client.list_nodegroups(clusterName=names.cluster_name(eks.cluster))["nodegroups"])


def suspended(eks: Any, name: str) -> list[str]:
    scaling = group(eks, name)["resources"]["autoScalingGroups"][0]["name"]
    answer = eks.tenant().client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[scaling])
    return [process["ProcessName"] for process in answer["AutoScalingGroups"][0]["SuspendedProcesses"]]


def private(eks: Any, *zones: str) -> list[str]:
    lines = [line for line in eks.ledger.lines() if line.kind == "subnet" and line.key.startswith("private")]
    return [line.vendor_id for line in lines if not zones or line.detail["zone"] in zones]


def test_a_group_has_its_type_a_disk_and_machines_of_ours_and_all_private_subnets(eks: Any, run: Run) -> None:
    change(eks, {**WORKERS, "disk_gib": 200, "count": 2, "min_size": 1, "labels": {"a": "b"}})
    run("node_groups")
    described = group(eks, "workers")
    assert described["amiType"] == "AL2023_x86_64_STANDARD"
    assert described["instanceTypes"] == ["m6i.large"]
    assert described["scalingConfig"] == {"minSize": 1, "maxSize": 8, "desiredSize": 2}
    assert described["subnets"] == private(eks)
    assert described["labels"] == {"a": "b", "modelplane.ai/pool": "workers"}
    ec2 = eks.tenant().client("ec2")
    versions = ec2.describe_launch_template_versions(LaunchTemplateId=described["launchTemplate"]["id"])
    data = versions["LaunchTemplateVersions"][0]["LaunchTemplateData"]
    (disk,) = data["BlockDeviceMappings"]
    assert disk["DeviceName"] == "/dev/xvda"
    assert disk["Ebs"] == {"VolumeSize": 200, "VolumeType": "gp3", "Encrypted": True, "DeleteOnTermination": True}
    assert data["MetadataOptions"] == {
        "HttpTokens": "required",
        "HttpPutResponseHopLimit": 1,
        "HttpEndpoint": "enabled",
    }
    of_machines = {s["ResourceType"]: tags.mapping(s["Tags"]) for s in data["TagSpecifications"]}
    for kind in ("instance", "network-interface", "volume"):
        assert of_machines[kind]["stockyard:installation"] == "inst-1", kind
        assert "stockyard:key" not in of_machines[kind], "each is of its claim, and not of the template"
    assert not {"InstanceType", "NetworkInterfaces", "ImageId"} & set(data)
    system = group(eks, "system")
    assert system["scalingConfig"] == {"minSize": 1, "maxSize": 2, "desiredSize": 1}
    assert system["instanceTypes"] == ["m6i.xlarge"]


def test_a_group_that_names_no_zones_is_where_its_type_is_offered(
    eks: Any, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = INSTANCE_TYPE_OFFERINGS["availability-zone"]
    row = {"InstanceType": "m6i.large", "Location": "us-east-1b"}
    monkeypatch.setitem(table, "us-east-1", [offer for offer in table["us-east-1"] if not row.items() <= offer.items()])
    original = offerings.offered_locations

    def offered_locations(calls: Calls, names: Sequence[str], *, zones: bool = False) -> set[tuple[str, str]]:
        return original(calls, names, zones=zones) - {(row["InstanceType"], row["Location"])}

    monkeypatch.setattr(offerings, "offered_locations", offered_locations)
    change(eks, WORKERS)
    run("node_groups")
    assert group(eks, "workers")["subnets"] == private(eks, "us-east-1a", "us-east-1c")
    assert group(eks, "system")["subnets"] == private(eks)


def test_a_group_with_efa_has_a_template_with_an_interface_for_each_card(eks: Any, run: Run) -> None:
    change(eks, EFA)
    run("node_groups")
    described = group(eks, "h100")
    assert described["amiType"] == "AL2023_x86_64_NVIDIA"
    assert described["labels"] == {"modelplane.ai/pool": "h100", "modelplane.ai/gpu": "nvidia-h100"}
    assert described["taints"] == [{"key": "nvidia.com/gpu", "value": "true", "effect": "NO_SCHEDULE"}]
    assert described["launchTemplate"]["name"] == names.part(eks.cluster, "lt-h100")
    assert described["subnets"] == private(eks, "us-east-1b")
    ec2 = eks.tenant().client("ec2")
    (version,) = ec2.describe_launch_template_versions(LaunchTemplateName=names.part(eks.cluster, "lt-h100"))[
        "LaunchTemplateVersions"
    ]
    data = version["LaunchTemplateData"]
    assert data["InstanceType"] == "p5.48xlarge"
    assert data["BlockDeviceMappings"][0]["Ebs"]["VolumeSize"] == 100
    interfaces = data["NetworkInterfaces"]
    assert len(interfaces) == 32
    assert [i["InterfaceType"] for i in interfaces] == ["efa", *["efa-only"] * 31]
    assert [i["DeviceIndex"] for i in interfaces] == [0, *[1] * 31]
    assert [i["NetworkCardIndex"] for i in interfaces] == list(range(32))
    own = [eks.ledger.find("security_group", key).vendor_id for key in ("efa", "cluster")]
    assert {tuple(i["Groups"]) for i in interfaces} == {tuple(own)}
    (efa,) = ec2.describe_security_groups(GroupIds=[own[0]])["SecurityGroups"]
    assert efa["GroupName"] == f"{eks.cluster.client_id}-efa"
    assert [p["UserIdGroupPairs"][0]["GroupId"] for p in efa["IpPermissions"]] == [own[0]]
    assert own[0] in [pair["GroupId"] for p in efa["IpPermissionsEgress"] for pair in p["UserIdGroupPairs"]]


def test_a_second_run_changes_nothing(eks: Any, run: Run) -> None:
    change(eks, WORKERS, EFA)
    run("node_groups")
    writes = eks.ledger.writes
    assert eks.provider.ensure("node_groups", eks.work("node_groups")).done
    assert eks.ledger.writes == writes


def test_limits_labels_and_taints_follow_the_settings_and_the_size_does_not(eks: Any, run: Run) -> None:
    taint = {"key": "a", "value": "b", "effect": "NoExecute"}
    change(eks, {**WORKERS, "count": 2, "max_size": 4, "labels": {"a": "1", "b": "2"}, "taints": [taint]})
    run("node_groups")
    change(eks, {**WORKERS, "count": 1, "max_size": 9, "labels": {"a": "3", "c": "4"}, "taints": []})
    eks.ensure("node_groups")
    described = group(eks, "workers")
    assert described["scalingConfig"] == {"minSize": 0, "maxSize": 9, "desiredSize": 2}
    assert described["labels"] == {"a": "3", "c": "4", "modelplane.ai/pool": "workers"}
    assert described.get("taints", []) == []
    change(eks, {**WORKERS, "count": 0, "max_size": 1})
    eks.ensure("node_groups")
    # Two machines are there, and none of them goes because of that.
    assert group(eks, "workers")["scalingConfig"] == {"minSize": 0, "maxSize": 2, "desiredSize": 2}


def test_machines_that_claims_have_made_stay_whatever_eks_tells_of_the_size(eks: Any, run: Run) -> None:
    change(eks, {**WORKERS, "count": 2, "max_size": 8})
    run("node_groups")
    scaling = group(eks, "workers")["resources"]["autoScalingGroups"][0]["name"]
    client, now = eks.tenant().client("autoscaling"), [START.timestamp()]
    for size, sizes, limits in (
        (5, {"min_size": 1, "max_size": 6}, (1, 6)),
        (4, {"min_size": 3, "max_size": 4}, (3, 4)),
        (3, {"min_size": 0, "max_size": 3}, (0, 4)),
    ):
        with paced(lambda kind: 3600.0 if kind == "size sync" else 0.0, lambda: now[0]):
            client.set_desired_capacity(AutoScalingGroupName=scaling, DesiredCapacity=size)
            change(eks, {**WORKERS, "count": 3, **sizes})
            eks.ensure("node_groups")
            (described,) = client.describe_auto_scaling_groups(AutoScalingGroupNames=[scaling])["AutoScalingGroups"]
        assert described["DesiredCapacity"] == size
        assert (described["MinSize"], described["MaxSize"]) == limits
        now[0] += 7200


def test_another_type_makes_a_group_beside_and_the_former_goes_when_it_is_empty(eks: Any, run: Run) -> None:
    change(eks, WORKERS)
    run("node_groups")
    change(eks, {**WORKERS, "instance_type": "m6i.2xlarge"})
    second = Generation("workers", 2)
    for _ in range(6):
        outcome = eks.provider.ensure("node_groups", eks.work("node_groups"))
        eks.later(outcome.wait_seconds)
    assert not outcome.done
    assert "workers still has nodes" in outcome.message
    assert groups(eks) == {"system", "workers", second.name(eks.cluster)}
    assert group(eks, second.name(eks.cluster))["instanceTypes"] == ["m6i.2xlarge"]
    assert group(eks, "workers")["scalingConfig"]["minSize"] == 0
    eks.tenant().client("autoscaling").set_desired_capacity(
        AutoScalingGroupName=group(eks, "workers")["resources"]["autoScalingGroups"][0]["name"], DesiredCapacity=0
    )
    eks.ensure("node_groups")
    assert groups(eks) == {"system", second.name(eks.cluster)}
    assert eks.ledger.find("node_group", "workers") is None
    assert eks.ledger.find("node_group", "workers/2") is not None


def test_zones_in_another_order_are_the_same_group(eks: Any, run: Run) -> None:
    zones = ["us-east-1a", "us-east-1b"]
    change(eks, {**WORKERS, "zones": zones})
    run("node_groups")
    change(eks, {**WORKERS, "zones": zones[::-1]})
    eks.ensure("node_groups")
    assert groups(eks) == {"system", "workers"}


def test_a_group_that_could_not_be_made_is_made_anew_by_the_next_try(
    eks: Any, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(eks, WORKERS)
    run("node_groups")
    created_at = group(eks, "workers")["createdAt"]
    issues = [{"code": "AsgInstanceLaunchFailures", "message": "InsufficientInstanceCapacity - none in us-east-1c"}]
    original = Calls.call

    def call(self: Calls, service: str, operation: str, **parameters: Any) -> Any:
        answer = original(self, service, operation, **parameters)
        if operation == "describe_nodegroup" and answer["nodegroup"]["createdAt"] == created_at:
            answer["nodegroup"] |= {"status": "CREATE_FAILED", "health": {"issues": issues}}
        return answer

    monkeypatch.setattr(Calls, "call", call)
    for _ in range(2):
        with pytest.raises(InsufficientCapacity, match="InsufficientInstanceCapacity"):
            eks.provider.ensure("node_groups", eks.work("node_groups"))
        issues.clear()  # EKS tells them for a while only
        eks.later(60)
    eks.cluster = replace(eks.cluster, attempt=eks.cluster.attempt + 1)
    eks.ensure("node_groups")
    assert group(eks, "workers")["createdAt"] > created_at
    assert groups(eks) == {"system", "workers"}


def test_an_add_on_that_waits_says_which_group_has_no_machine(
    eks: Any, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("node_groups")
    issues = [{"code": "AsgInstanceLaunchFailures", "message": "InsufficientInstanceCapacity - none"}]
    original = Calls.call

    def call(self: Calls, service: str, operation: str, **parameters: Any) -> Any:
        answer = original(self, service, operation, **parameters)
        if operation == "describe_nodegroup":
            answer["nodegroup"] |= {"status": "DEGRADED", "health": {"issues": issues}}
        return answer

    monkeypatch.setattr(Calls, "call", call)
    outcome = eks.provider.ensure("addons", eks.work("addons"))
    assert not outcome.done
    assert "node group system: AsgInstanceLaunchFailures: InsufficientInstanceCapacity - none" in outcome.message


def test_a_group_that_the_settings_do_not_name_goes_with_its_template(eks: Any, run: Run) -> None:
    change(eks, EFA)
    run("node_groups")
    change(eks)
    eks.later(120)
    eks.ensure("node_groups")
    assert groups(eks) == {"system"}
    assert eks.ledger.find("launch_template", "h100") is None


def test_scaling_groups_carry_our_tags(eks: Any, run: Run) -> None:
    run("node_groups")
    name = group(eks, "system")["resources"]["autoScalingGroups"][0]["name"]
    described = eks.tenant().client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[name])
    tags = {tag["Key"]: tag["Value"] for tag in described["AutoScalingGroups"][0]["Tags"]}
    assert tags["stockyard:installation"] == "inst-1"
    assert tags["stockyard:resource"] == eks.cluster.id
    assert suspended(eks, "system") == ["AZRebalance"]


def test_nodes_get_the_version_of_their_control_plane(eks: Any, run: Run) -> None:
    run("node_groups")
    eks.cluster = replace(eks.cluster, kubernetes_version="1.36")
    eks.ensure("control_plane")
    eks.ensure("node_groups")
    assert group(eks, "system")["version"] == "1.36"
    assert suspended(eks, "system") == ["AZRebalance"]


def test_a_version_that_its_nodes_did_not_get_leaves_machines_of_claims_alone(eks: Any, run: Run) -> None:
    run("node_groups")
    eks.cluster = replace(eks.cluster, kubernetes_version="1.36")
    eks.ensure("control_plane")
    full: Mapping[str, int] = {"m6i.xlarge": 1}
    with limited(full), pytest.raises(VendorRefused, match="did not carry out"):
        eks.ensure("node_groups")
    assert suspended(eks, "system") == ["AZRebalance"]
    eks.ensure("node_groups")
    assert group(eks, "system")["version"] == "1.36"
    assert suspended(eks, "system") == ["AZRebalance"]


@pytest.mark.parametrize(
    ("issues", "error", "text"),
    [
        (
            [{"code": "AsgInstanceLaunchFailures", "message": "no m6i capacity"}],
            InsufficientCapacity,
            "no m6i capacity",
        ),
        ([{"code": "Ec2SubnetNotFound", "message": "no such subnet"}], VendorRefused, "no such subnet"),
        ([], VendorRefused, "CREATE_FAILED"),
    ],
)
def test_a_failed_group_says_why(
    eks: Any, run: Run, monkeypatch: pytest.MonkeyPatch, issues: Any, error: type[VendorError], text: str
) -> None:
    run("node_groups")
    original = Calls.call

    def call(self: Calls, service: str, operation: str, **parameters: Any) -> Any:
        answer = original(self, service, operation, **parameters)
        if operation == "describe_nodegroup":
            answer["nodegroup"] |= {"status": "CREATE_FAILED", "health": {"issues": issues}}
        return answer

    monkeypatch.setattr(Calls, "call", call)
    with pytest.raises(error, match=text):
        eks.provider.ensure("node_groups", eks.work("node_groups"))


def test_a_group_of_a_zone_without_a_subnet_is_refused(eks: Any, run: Run) -> None:
    change(eks, {**H100, "zones": ["us-east-1f"]})
    with pytest.raises(VendorRefused, match="no subnet in us-east-1f"):
        run("node_groups")


@pytest.mark.parametrize("lost", ["node_group/h100", "launch_template/h100", "node_group/system"])
def test_a_crash_between_the_call_and_the_record_makes_nothing_twice(eks: Any, run: Run, lost: str) -> None:
    change(eks, EFA)
    run("access")
    eks.ledger.fail_made = lost
    with pytest.raises(RuntimeError):
        eks.ensure("node_groups")
    eks.ensure("node_groups")
    assert groups(eks) == {"system", "h100"}
    assert len([line for line in eks.ledger.lines() if line.kind == "launch_template"]) == 2


def test_machines_get_no_version_without_their_template_and_the_group_is_named(eks: Any, run: Run) -> None:
    change(eks, {**EFA, "count": 1})
    run("node_groups")
    template = eks.ledger.find("launch_template", "h100").vendor_id
    eks.tenant().client("ec2").delete_launch_template(LaunchTemplateId=template)
    eks.later(3600)
    assert eks.ensure("node_groups").done, "what stands needs no template"
    eks.cluster = replace(eks.cluster, kubernetes_version="1.36")
    eks.ledger.cluster = eks.cluster
    eks.ensure("control_plane")
    with pytest.raises(VendorRefused, match=f"launch template {template} of node group h100 is gone") as caught:
        eks.ensure("node_groups")
    assert "another type, disk or zones" in caught.value.hint
