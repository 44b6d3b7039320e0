"""Every row of the reference's tables for a cluster on AWS, as decided."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockyard.domain.models.base import read
from stockyard.domain.models.clusters.clusters import ClusterCreate, settings_for
from stockyard.errors import InvalidInput
from stockyard.providers.clusters.ec2.settings import AwsSettings

WORKER = {"name": "gpu", "role": "worker", "min_size": 0, "max_size": 4, "instance_types": ["g5.xlarge"]}
CONTROL = {"name": "cp", "role": "control", "min_size": 1, "max_size": 1, "instance_types": ["m5.large", "m5.xlarge"]}
MINIMAL = {
    "name": "my-k8s",
    "description": "demo",
    "cloud_account_id": 16,
    "cluster_type": "k8s",
    "settings": {"key_pair": "my-key"},
}


def changed(path, value):
    """``MINIMAL`` with one place changed; ``...`` removes it."""
    document = copy.deepcopy(MINIMAL)
    *parents, last = path.strip("/").split("/")
    parent = document
    for part in parents:
        parent = parent[part]
    if value is ...:
        del parent[last]
    else:
        parent[last] = value
    return document


def faults(document):
    """As a request for a cluster in AWS is read: its form, then its settings, whose cloud the account says."""
    with pytest.raises(InvalidInput) as caught:
        normal(read(ClusterCreate, document))
    return {problem.pointer: problem.detail for problem in caught.value.errors}


def normal(cluster):
    """The settings as the record keeps them."""
    is_request = isinstance(cluster, ClusterCreate)
    return settings_for("aws", cluster.cluster_type, None, cluster.name, cluster.settings, creation=is_request)


def groups(*given_groups):
    return changed("/settings/autoscaler_node_groups", list(given_groups))


def test_the_minimal_request_is_filled_up():
    cluster = read(ClusterCreate, MINIMAL)
    assert cluster.secret is None
    assert normal(cluster) == {
        "mirror": True,
        "key_pair": "my-key",
        "region_name": "us-east-1",
        "control_plane_instance_type": "t3.xlarge",
        "control_plane_instance_types": ["t3.xlarge", "t3a.xlarge", "m5.xlarge"],
        "control_plane_size": 1,
        "control_plane_workloads": False,
        "vpc_cidr": "10.0.0.0/16",
        "vpc_id": None,
        "subnet_id": None,
        "subnets": [],
        "zones": [],
        "nat_gateways": "one",
        "bastion": None,
        "autoscaler_node_groups": [],
        "integrations": [],
        "ssh_cidrs": [],
        "api_cidrs": ["0.0.0.0/0"],
        "public_control_plane": False,
        "etcd_volume_gib": 20,
        "etcd_snapshots": 7,
        "etcd_backup": None,
        "cloud_controllers": True,
        "image": None,
        "repave_approval": "automatic",
        "overlay": None,
    }


def test_the_full_request_of_the_reference():
    document = groups(
        CONTROL,
        {
            **WORKER,
            "labels": {"workload": "gpu"},
            "taints": [{"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}],
            "allocation_strategy": "capacity-optimized",
        },
    )
    document["secret"] = "a" * 24
    document["settings"] |= {
        "region_name": "eu-west-1",
        "control_plane_instance_type": "t3.large",
        "vpc_id": "vpc-0123456789abcdef0",
        "subnet_id": "subnet-01234567",
        "integrations": ["jupyterhub"],
    }
    cluster = read(ClusterCreate, document)
    assert cluster.secret.get_secret_value() == "a" * 24
    assert "aaaa" not in repr(cluster)
    settings = normal(cluster)
    assert (settings["control_plane_instance_type"], settings["region_name"]) == ("m5.large", "eu-west-1")
    worker = settings["autoscaler_node_groups"][1]
    assert worker["taints"] == [{"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}]
    assert (worker["allocation_strategy"], worker["capacity_type"]) == ("capacity-optimized", "on-demand")
    assert settings["autoscaler_node_groups"][0]["allocation_strategy"] == "lowest-price"


def test_normal_settings_are_valid_settings_and_stay_as_they_are():
    settings = normal(read(ClusterCreate, groups(CONTROL, WORKER)))
    again = read(AwsSettings, json.loads(json.dumps(settings)))
    assert again.normal() == settings


@pytest.mark.parametrize("path", ["/colour", "/settings/colour", "/id"])
def test_an_unknown_field_is_refused_by_name(path):
    assert faults(changed(path, 1)) == {path: "unknown field"}


@pytest.mark.parametrize("name", ["a", "A9", "a-b", "9", "a" * 128, "a--b"])
def test_names_that_are_good(name):
    assert read(ClusterCreate, changed("/name", name)).name == name


@pytest.mark.parametrize("name", ["", "-a", "a-", "a_b", "a.b", "a b", "ä", "a" * 129, "a\n", "clu_1", 7, None, ["a"]])
def test_names_that_are_not(name):
    assert set(faults(changed("/name", name))) == {"/name"}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/description", 7),
        ("/description", ""),
        ("/description", "x" * 1025),
        ("/description", "\x00"),
        ("/cloud_account_id", "16"),
        ("/cloud_account_id", 0),
        ("/cloud_account_id", 1.5),
        ("/cloud_account_id", True),
        ("/cloud_account_id", 2**63),
        ("/cluster_type", "slurm"),
        ("/cluster_type", "K8S"),
        ("/settings", []),
        ("/settings/key_pair", ""),
        ("/settings/key_pair", " my-key"),
        ("/settings/key_pair", "kéy"),
        ("/settings/key_pair", None),
        ("/settings/region_name", "us_east_1"),
        ("/settings/region_name", "useast1"),
        ("/settings/region_name", ""),
        ("/settings/control_plane_instance_type", "t3"),
        ("/settings/control_plane_instance_type", "T3.large"),
        ("/settings/vpc_id", "vpc-1"),
        ("/settings/vpc_id", "subnet-01234567"),
        ("/settings/vpc_id", "vpc-0123456G"),
        ("/settings/subnet_id", "vpc-01234567"),
        ("/settings/integrations/0", None),
        ("/settings/public_control_plane", "yes"),
        ("/settings/ssh_cidrs", "10.0.0.0/8"),
        ("/settings/api_cidrs", []),
        ("/tags", ["a"]),
    ],
)
def test_values_that_are_refused_at_their_field(path, value):
    if path.endswith("/0"):
        assert set(faults(changed(path[:-2], [value]))) == {path}
    else:
        assert set(faults(changed(path, value))) == {path}


@pytest.mark.parametrize("secret", ["a" * 24, "a" * 32, "!#$%&'()*+,-./0123456789"])
def test_secrets_that_are_good(secret):
    assert read(ClusterCreate, changed("/secret", secret)).secret.get_secret_value() == secret


@pytest.mark.parametrize(
    "secret", ["c" * 23, "c" * 33, "canary secret with space", "canary-sécret-canary-sec", "c" * 24 + "\n"]
)
def test_secrets_that_are_not_and_are_never_repeated(secret):
    document = changed("/secret", secret)
    with pytest.raises(InvalidInput) as caught:
        read(ClusterCreate, document)
    assert [problem.pointer for problem in caught.value.errors] == ["/secret"]
    assert secret not in repr(caught.value.errors) + caught.value.detail
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_group_sizes():
    assert faults(groups({**WORKER, "min_size": 5})) == {
        "/settings/autoscaler_node_groups/0/min_size": "must not be greater than max_size"
    }
    assert set(faults(groups({**WORKER, "max_size": 10_001}))) == {"/settings/autoscaler_node_groups/0/max_size"}
    assert set(faults(groups({**WORKER, "min_size": -1}))) == {"/settings/autoscaler_node_groups/0/min_size"}
    full = read(ClusterCreate, groups({**WORKER, "min_size": 100, "max_size": 100}))
    assert normal(full)["autoscaler_node_groups"][0]["max_size"] == 100


@pytest.mark.parametrize("field", ["name", "role", "min_size", "max_size", "instance_types"])
def test_a_group_has_all_its_fields(field):
    group = {key: value for key, value in WORKER.items() if key != field}
    assert faults(groups(group)) == {f"/settings/autoscaler_node_groups/0/{field}": "this field is required"}


@pytest.mark.parametrize(
    ("field", "value", "path"),
    [
        ("name", "-a", "name"),
        ("name", "a" * 64, "name"),
        ("role", "master", "role"),
        ("instance_types", [], "instance_types"),
        ("instance_types", ["g5.xlarge", "g5.xlarge"], "instance_types/1"),
        ("instance_types", ["g5"], "instance_types/0"),
        ("allocation_strategy", "cheapest", "allocation_strategy"),
        ("capacity_type", "reserved", "capacity_type"),
        ("labels", {"a b": "c"}, "labels/a b"),
        ("labels", {"UPPER.example/a": "c"}, "labels/UPPER.example~1a"),
        ("labels", {"a/b/c": "c"}, "labels/a~1b~1c"),
        ("labels", {"": "c"}, "labels/"),
        ("labels", {"a": "x" * 64}, "labels/a"),
        ("labels", {"a": "-x"}, "labels/a"),
        ("labels", {"a": 1}, "labels/a"),
        ("taints", [{"key": "a"}], "taints/0/effect"),
        ("taints", [{"effect": "NoSchedule"}], "taints/0/key"),
        ("taints", [{"key": "a", "effect": "Never"}], "taints/0/effect"),
        ("taints", [{"key": "-", "effect": "NoExecute"}], "taints/0/key"),
        ("taints", [{"key": "a", "effect": "NoExecute"}] * 2, "taints/1"),
        ("id", "x", "id"),
    ],
)
def test_group_fields_that_are_refused(field, value, path):
    assert set(faults(groups({**WORKER, field: value}))) == {f"/settings/autoscaler_node_groups/0/{path}"}


@pytest.mark.parametrize("strategy", ["lowest-price", "diversified", "capacity-optimized", "price-capacity-optimized"])
def test_allocation_strategies(strategy):
    group = {**WORKER, "allocation_strategy": strategy, "capacity_type": "spot"}
    assert normal(read(ClusterCreate, groups(group)))["autoscaler_node_groups"][0]["allocation_strategy"] == strategy


@pytest.mark.parametrize("key", ["a", "a/b", "example.com/a", "node.kubernetes.io/a_b.c", "p" * 63, "x/" + "p" * 63])
def test_label_keys_that_are_good(key):
    group = {**WORKER, "labels": {key: ""}, "taints": [{"key": key, "effect": "PreferNoSchedule"}]}
    assert read(ClusterCreate, groups(group))


def test_groups_beside_each_other():
    many = [{**WORKER, "name": f"g{number}"} for number in range(201)]
    assert read(ClusterCreate, groups(*many[:200]))
    assert set(faults(groups(*many))) == {"/settings/autoscaler_node_groups"}
    assert faults(groups(WORKER, CONTROL, WORKER)) == {
        "/settings/autoscaler_node_groups/2/name": "another group has this name"
    }
    assert faults(groups(CONTROL, {**CONTROL, "name": "cp2"})) == {
        "/settings/autoscaler_node_groups/1/role": "only one group may have the role control"
    }


@pytest.mark.parametrize(
    ("smallest", "largest", "text"),
    [
        (2, 2, "must be 1, 3 or 5"),
        (0, 0, "must be 1, 3 or 5"),
        (4, 4, "must be 1, 3 or 5"),
        (1, 3, "fixed size"),
    ],
)
def test_a_control_plane_has_a_fixed_and_odd_size(smallest, largest, text):
    problems = faults(groups({**CONTROL, "min_size": smallest, "max_size": largest}))
    assert list(problems) == ["/settings/autoscaler_node_groups/0/max_size"]
    assert text in problems["/settings/autoscaler_node_groups/0/max_size"]


@pytest.mark.parametrize("size", [1, 3, 5])
def test_the_control_group_says_the_size_of_the_control_plane(size):
    document = groups({**CONTROL, "min_size": size, "max_size": size})
    assert normal(read(ClusterCreate, document))["control_plane_size"] == size
    document["settings"]["control_plane_size"] = 3 if size == 1 else 1
    assert list(faults(document)) == ["/settings/control_plane_size"]


def test_integrations_are_known_and_listed_once():
    assert set(faults(changed("/settings/integrations", ["istio"]))) == {"/settings/integrations/0"}
    assert set(faults(changed("/settings/integrations", ["slurm", "slurm"]))) == {"/settings/integrations/1"}


@pytest.mark.parametrize(
    ("name", "good"), [("hpc-1", True), ("h", True), ("Hpc", False), ("1hpc", False), ("h--1", True), ("hPc", False)]
)
def test_slurm_wants_its_own_kind_of_name(name, good):
    document = changed("/name", name) | {"settings": {"key_pair": "k", "integrations": ["jupyterhub", "slurm"]}}
    if good:
        assert read(ClusterCreate, document).name == name
    else:
        assert set(faults(document)) == {"/name"}


@pytest.mark.parametrize(
    ("cidrs", "path"),
    [
        (["10.0.0.1/8"], "/0"),
        (["10.0.0.0/33"], "/0"),
        (["10.0.0.0"], "/0"),
        (["::/0"], "/0"),
        (["10.0.0.0/255.0.0.0"], "/0"),
        (["10.0.0.0/8", "10.0.0.0/8"], "/1"),
        ([f"10.0.{number}.0/24" for number in range(21)], ""),
    ],
)
def test_ranges_that_are_refused(cidrs, path):
    for name in ("ssh_cidrs", "api_cidrs"):
        assert set(faults(changed(f"/settings/{name}", cidrs))) == {f"/settings/{name}{path}"}


@pytest.mark.parametrize(
    "key",
    [
        "aws:a", "AWS:a", "stockyard:tenant", "Stockyard:x", "Name", "kubernetes.io/cluster/a",
        "kubernetes.io/role/elb", "", "a" * 129, "a!",
    ],
)  # fmt: skip
def test_tags_that_cannot_be_given(key):
    assert set(faults(changed("/tags", {key: "v"}))) == {"/tags/" + key.replace("/", "~1")}


def test_tags_have_limits():
    assert read(ClusterCreate, changed("/tags", {f"k{n}": "v w" for n in range(30)}))
    assert set(faults(changed("/tags", {f"k{n}": "v" for n in range(31)}))) == {"/tags"}
    assert set(faults(changed("/tags", {"k": "v" * 257}))) == {"/tags/k"}
    assert set(faults(changed("/tags", {"k": "<"}))) == {"/tags/k"}


def test_of_a_driver_that_is_refused_no_settings_are_asked_for():
    document = {**MINIMAL, "driver": "foo", "settings": {}}
    with pytest.raises(InvalidInput) as caught:
        read(ClusterCreate, document)
    assert [problem.pointer for problem in caught.value.errors] == ["/driver"]


def test_all_faults_are_told_at_once():
    document = {**MINIMAL, "name": "-", "cluster_type": "x", "settings": {"vpc_id": "x", "subnet_id": "y"}}
    expected = {"/name", "/cluster_type", "/settings/key_pair", "/settings/vpc_id", "/settings/subnet_id"}
    assert set(faults(document)) == expected
    with pytest.raises(InvalidInput, match=r"5 fields are not valid"):
        read(ClusterCreate, document)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
pointers = ["/name", "/secret", "/settings", "/tags", "/settings/autoscaler_node_groups", "/settings/ssh_cidrs"]


@given(json_values, st.sampled_from(pointers))
def test_any_json_at_any_field_is_read_or_refused_at_that_field(value, path):
    try:
        settings = normal(read(ClusterCreate, changed(path, value)))
    except InvalidInput as error:
        faulty = [problem.pointer for problem in error.errors if not problem.pointer.startswith(path)]
        assert faulty == [], error.detail  # noqa: PT017
    else:
        json.dumps(settings)


@given(json_values)
def test_any_json_is_read_or_refused(value):
    with pytest.raises(InvalidInput):
        read(ClusterCreate, value)
