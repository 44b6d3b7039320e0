"""Merge patches of clusters."""

from __future__ import annotations

import pytest

from stockyard.domain.models.base import read
from stockyard.domain.models.clusters.clusters import settings_for
from stockyard.domain.models.clusters.patch import ClusterPatch
from stockyard.domain.records import Cluster
from stockyard.errors import InvalidInput


def cluster(driver, settings):
    return Cluster(
        id="clu_1",
        name="demo",
        description="",
        cluster_type="k8s",
        provider="aws",
        cloud_account_id=1,
        client_id="demo",
        status="ready",
        settings=settings,
        created_at="",
        updated_at="",
        driver=driver,
    )


def eks_settings():
    return settings_for("aws", "k8s", "eks", "demo", {"region_name": "us-east-1"})


def pointers(document):
    with pytest.raises(InvalidInput) as caught:
        read(ClusterPatch, document)
    return {problem.pointer: problem.detail for problem in caught.value.errors}


def test_what_is_absent_stays():
    patch = read(ClusterPatch, {})
    assert patch.description is None
    assert patch.tags_after({"a": "b"}) is None


def test_tags_are_merged():
    current = {"a": "1", "b": "2"}
    assert read(ClusterPatch, {"tags": {"a": None, "c": "3"}}).tags_after(current) == {"b": "2", "c": "3"}
    assert read(ClusterPatch, {"tags": None}).tags_after(current) == {}
    assert read(ClusterPatch, {"tags": {"x": None}}).tags_after(current) == current
    assert current == {"a": "1", "b": "2"}


def test_the_merged_tags_must_be_good():
    current = {f"k{n}": "v" for n in range(40)}
    with pytest.raises(InvalidInput) as caught:
        read(ClusterPatch, {"tags": {"one-more": "v"}}).tags_after(current)
    assert [problem.pointer for problem in caught.value.errors] == ["/tags"]
    with pytest.raises(InvalidInput) as caught:
        read(ClusterPatch, {"tags": {"aws:x": "v"}}).tags_after({})
    assert [problem.pointer for problem in caught.value.errors] == ["/tags/aws:x"]
    assert pointers({"tags": {"a": 1}}) == {"/tags/a": "must be a string"}


@pytest.mark.parametrize("name", ["name", "cloud_account_id", "cluster_type", "secret"])
def test_what_is_fixed_says_so(name):
    assert pointers({name: "x"}) == {f"/{name}": "cannot be changed after creation"}


def test_settings_are_fixed_each_by_its_name():
    problems = pointers({"settings": {"image": "ami-0123456789abcdef0", "vpc_cidr": "10.1.0.0/16"}})
    assert problems == dict.fromkeys(("/settings/image", "/settings/vpc_cidr"), "cannot be changed after creation")
    assert pointers({"settings": {"colour": 1}}) == {"/settings/colour": "unknown field"}
    assert read(ClusterPatch, {"settings": {}})


def test_setting_of_the_mirror_may_change():
    for driver, settings in (("ec2", {"key_pair": "k"}), ("eks", eks_settings())):
        before = cluster(driver, {**settings, "mirror": True})
        patch = read(ClusterPatch, {"settings": {"mirror": False}})
        assert patch.settings_after(before) == {**settings, "mirror": False}
        assert read(ClusterPatch, {"settings": {}}).settings_after(before) is None
    assert pointers({"settings": {"mirror": None}}) == {"/settings/mirror": "cannot be removed"}


def test_what_a_driver_lets_change_is_refused_for_clusters_of_others():
    patch = read(ClusterPatch, {"settings": {"support": "extended"}})
    assert patch.settings_after(cluster("eks", eks_settings()))["support"] == "extended"
    with pytest.raises(InvalidInput) as caught:
        patch.settings_after(cluster("ec2", {"key_pair": "k"}))
    assert [(fault.pointer, fault.detail) for fault in caught.value.errors] == [
        ("/settings/support", "cannot be changed after creation")
    ]


def test_faults_of_changeable_settings_are_told_together():
    groups = [{"name": "a", "role": "system", "instance_type": "m6i.large", "min_size": 2, "colour": 1}]
    problems = pointers({"settings": {"support": "none", "node_groups": groups, "vpc_cidr": "10.0.0.0/16"}})
    assert problems == {"/settings/vpc_cidr": "cannot be changed after creation"}, "what is fixed comes first"
    problems = pointers({"settings": {"support": "none", "node_groups": groups}})
    assert problems.keys() == {"/settings/support", "/settings/node_groups/0/colour"}
    assert pointers({"settings": {"public_access_cidrs": None}}) == {
        "/settings/public_access_cidrs": "cannot be removed"
    }


def test_settings_come_back_as_they_were_read():
    before = cluster("eks", eks_settings())
    patch = read(ClusterPatch, {"settings": {"node_groups": before.settings["node_groups"]}})
    assert patch.settings_after(before) == before.settings
    without_system = read(ClusterPatch, {"settings": {"node_groups": []}}).settings_after(before)
    assert [group["name"] for group in without_system["node_groups"]] == ["system"], "every cluster has that group"


def test_maps_of_settings_are_merged_and_lists_replaced():
    before = cluster("eks", {**eks_settings(), "addon_versions": {"coredns": "v1.12.0"}})
    document = {"addon_versions": {"coredns": None, "vpc-cni": "v1.20.0"}, "public_access_cidrs": ["192.0.2.0/24"]}
    after = read(ClusterPatch, {"settings": document}).settings_after(before)
    assert after["addon_versions"] == {"vpc-cni": "v1.20.0"}
    assert after["public_access_cidrs"] == ["192.0.2.0/24"]
    with pytest.raises(InvalidInput) as caught:
        read(ClusterPatch, {"settings": {"addon_versions": {"coredns": "latest"}}}).settings_after(before)
    assert [fault.pointer for fault in caught.value.errors] == ["/settings/addon_versions/coredns"]


GROUPS = [
    {"name": "cp", "role": "control", "min_size": 1, "max_size": 1, "instance_types": ["t3.xlarge"]},
    {"name": "workers", "role": "worker", "min_size": 1, "max_size": 3, "instance_types": ["t3.large"]},
]


def on_machines(*, grouped):
    groups = {"autoscaler_node_groups": GROUPS} if grouped else {"control_plane_instance_type": "t3.xlarge"}
    return cluster("ec2", settings_for("aws", "k8s", "ec2", "demo", {"key_pair": "k", **groups}))


def control_plane_of(settings):
    control = [group for group in settings["autoscaler_node_groups"] if group["role"] == "control"]
    sizes = [(group["min_size"], group["max_size"], group["instance_types"]) for group in control]
    names = ("size", "instance_type", "instance_types")
    return [*(settings[f"control_plane_{name}"] for name in names), *sizes]


@pytest.mark.parametrize("grouped", [True, False])
def test_size_and_type_of_a_control_plane_are_patched_alone(grouped):
    before = on_machines(grouped=grouped)
    grown = read(ClusterPatch, {"settings": {"control_plane_size": 3}}).settings_after(before)
    group = [(3, 3, ["t3.xlarge"])] if grouped else []
    assert control_plane_of(grown) == [3, "t3.xlarge", ["t3.xlarge"], *group]
    other = read(ClusterPatch, {"settings": {"control_plane_instance_type": "m5.xlarge"}}).settings_after(before)
    group = [(1, 1, ["m5.xlarge"])] if grouped else []
    assert control_plane_of(other) == [1, "m5.xlarge", ["m5.xlarge"], *group]
    types = {"settings": {"control_plane_instance_types": ["m5.xlarge", "t3.xlarge"]}}
    assert control_plane_of(read(ClusterPatch, types).settings_after(before))[1:3] == [
        "m5.xlarge",
        ["m5.xlarge", "t3.xlarge"],
    ]
    assert [group for group in grown["autoscaler_node_groups"] if group["role"] == "worker"] == [
        group for group in before.settings["autoscaler_node_groups"] if group["role"] == "worker"
    ]


def test_a_control_group_says_size_and_type_of_the_control_plane():
    before = on_machines(grouped=True)
    groups = [{**GROUPS[0], "min_size": 3, "max_size": 3, "instance_types": ["m5.xlarge"]}, GROUPS[1]]
    after = read(ClusterPatch, {"settings": {"autoscaler_node_groups": groups}}).settings_after(before)
    assert control_plane_of(after) == [3, "m5.xlarge", ["m5.xlarge"], (3, 3, ["m5.xlarge"])]
    both = {"autoscaler_node_groups": groups, "control_plane_size": 5}
    with pytest.raises(InvalidInput) as caught:
        read(ClusterPatch, {"settings": both}).settings_after(before)
    assert [fault.pointer for fault in caught.value.errors] == ["/settings/control_plane_size"]
    shrunk = {"settings": {"control_plane_size": 1}}
    with pytest.raises(InvalidInput, match="only grows"):
        read(ClusterPatch, shrunk).settings_after(cluster("ec2", after))


@pytest.mark.parametrize("version", ["1.35.4", "latest", "v1.35", 1.35, None])
def test_a_version_is_a_minor(version):
    assert pointers({"kubernetes_version": version}).keys() == {"/kubernetes_version"}
    assert read(ClusterPatch, {"kubernetes_version": "1.36"}).kubernetes_version == "1.36"


def test_what_cannot_be_removed_or_is_unknown():
    assert pointers({"description": None}) == {"/description": "cannot be removed"}
    assert pointers({"colour": 1}) == {"/colour": "unknown field"}
    assert pointers([]) == {"": "must be an object"}
    assert read(ClusterPatch, {"description": "d"}).description == "d"
