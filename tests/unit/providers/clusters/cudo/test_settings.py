"""The settings of clusters on Cudo: what is taken, what is refused and by which words, and what the record keeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stockyard.domain.models.base import read
from stockyard.errors import InvalidInput
from stockyard.providers.clusters.cudo.configuration import ControlPlane, Profile, control_plane
from stockyard.providers.clusters.cudo.settings import CudoSettings
from stockyard.providers.clusters.ec2.settings import AwsSettings

EXAMPLE = Path(__file__).parents[6] / "shared" / "examples" / "vantage" / "cudo-k8s-create-cluster.json"
CONTROL = {
    "id": "control-plane",
    "role": "control",
    "min_size": 1,
    "max_size": 1,
    "vcpus": 8,
    "memory_gib": 16,
    "boot_disk_size_gib": 100,
    "data_center_id": "us-dallas-1",
    "machine_type": "intel-broadwell",
}
GPUS = {
    **CONTROL,
    "id": "gpu",
    "role": "worker",
    "min_size": 0,
    "max_size": 2,
    "machine_type": "intel-broadwell-v100",
    "gpus": 1,
    "gpu_model": "V100",
}
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA me@example.test"


def faults(**settings: Any) -> dict[str, str]:
    with pytest.raises(InvalidInput) as caught:
        read(CudoSettings, settings, at=("settings",))
    return {problem.pointer.removeprefix("/settings/"): problem.detail for problem in caught.value.errors}


def normal(**settings: Any) -> dict[str, Any]:
    return read(CudoSettings, settings).normal()


def test_everything_has_a_default() -> None:
    assert normal() == {
        "mirror": True,
        "autoscaler_node_groups": [],
        "control_plane_size": "md",
        "instance_type": "vantage-k8s-control-md",
        "ssh_public_key": None,
        "dev_mode": False,
        "no_vault": False,
        "api_cidrs": ["0.0.0.0/0"],
        "ssh_cidrs": [],
        "overlay": None,
    }


@pytest.mark.parametrize(
    ("size", "profile"), [("sm", Profile(4, 8, 50)), ("md", Profile(8, 16, 100)), ("lg", Profile(16, 32, 200))]
)
def test_a_size_and_its_profile_are_the_same(size: str, profile: Profile) -> None:
    by_name = normal(instance_type=f"vantage-k8s-control-{size}")
    assert by_name == normal(control_plane_size=size)
    assert control_plane(by_name) == ControlPlane(profile)


def test_a_control_group_is_the_machine() -> None:
    group = {**CONTROL, "vcpus": 6, "memory_gib": 24, "machine_type": "epyc-milan"}
    machine = control_plane(normal(autoscaler_node_groups=[GPUS, group]))
    assert (machine.profile, machine.machine_type) == (Profile(6, 24, 100), "epyc-milan")
    assert machine.pointer == "/settings/autoscaler_node_groups/1"


def test_a_control_group_and_a_size_must_agree() -> None:
    assert normal(control_plane_size="md", autoscaler_node_groups=[CONTROL])["control_plane_size"] == "md"
    for named in ({"control_plane_size": "sm"}, {"instance_type": "vantage-k8s-control-sm"}):
        details = faults(**named, autoscaler_node_groups=[GPUS, CONTROL])
        assert set(details) == {f"autoscaler_node_groups/1/{n}" for n in ("vcpus", "memory_gib", "boot_disk_size_gib")}
        assert details["autoscaler_node_groups/1/vcpus"].startswith("must be 4, as in vantage-k8s-control-sm")


@pytest.mark.parametrize(
    ("settings", "pointer", "words"),
    [
        ({"control_plane_size": "sm", "instance_type": "vantage-k8s-control-lg"}, "instance_type", "another profile"),
        ({"control_plane_size": "xl"}, "control_plane_size", ""),
        ({"instance_type": "t3.xlarge"}, "instance_type", ""),
        ({"integrations": ["slurm"]}, "integrations", "the table of their settings has no such field"),
        ({"key_pair": "my-key"}, "key_pair", "is a field of clusters on AWS"),
        ({"region_name": "us-east-1"}, "region_name", "is a field of clusters on AWS"),
        ({"colour": "red"}, "colour", "unknown field"),
        ({"ssh_public_key": "not a key"}, "ssh_public_key", "public key"),
        ({"ssh_cidrs": ["192.0.2.0/24"]}, "ssh_cidrs", "without ssh_public_key"),
        ({"dev_mode": "yes"}, "dev_mode", "true or false"),
    ],
)
def test_settings_that_are_refused(settings: dict[str, Any], pointer: str, words: str) -> None:
    details = faults(**settings)
    assert set(details) == {pointer}
    assert words in details[pointer]


@pytest.mark.parametrize(
    ("changed", "field", "words"),
    [
        ({"name": "gpu"}, "name", "named by its id"),
        ({"taints": []}, "taints", "on AWS"),
        ({"instance_types": ["t3.large"]}, "instance_types", "on AWS"),
        ({"vcpus": 0}, "vcpus", ""),
        ({"memory_gib": "32"}, "memory_gib", "whole number"),
        ({"boot_disk_size_gib": 5}, "boot_disk_size_gib", ""),
        ({"data_center_id": "US Dallas"}, "data_center_id", ""),
        ({"machine_type": None}, "machine_type", ""),
        ({"min_size": 3}, "min_size", "max_size"),
        ({"gpus": 0}, "gpus", "beside gpu_model"),
        ({"role": "control"}, "max_size", "one machine"),
        ({"id": "Has space"}, "id", ""),
    ],
)
def test_groups_that_are_refused(changed: dict[str, Any], field: str, words: str) -> None:
    details = faults(autoscaler_node_groups=[{**GPUS, **changed}])
    assert set(details) == {f"autoscaler_node_groups/0/{field}"}
    assert words in details[f"autoscaler_node_groups/0/{field}"]


def test_all_faults_are_told_together() -> None:
    details = faults(key_pair="k", dev_mode=1, autoscaler_node_groups=[{**GPUS, "name": "n", "vcpus": 0}])
    assert set(details) == {"key_pair", "dev_mode", "autoscaler_node_groups/0/name", "autoscaler_node_groups/0/vcpus"}


def test_groups_have_ids_of_their_own_and_one_is_the_control_plane() -> None:
    assert set(faults(autoscaler_node_groups=[CONTROL, GPUS, CONTROL])) == {
        "autoscaler_node_groups/2/id",
        "autoscaler_node_groups/2/role",
    }


def test_fields_of_aws_are_still_faults_of_their_own_there() -> None:
    with pytest.raises(InvalidInput) as caught:
        read(AwsSettings, {"key_pair": "my-key", "colour": "red"})
    assert [(problem.pointer, problem.detail) for problem in caught.value.errors] == [("/colour", "unknown field")]


def test_the_published_request_is_taken() -> None:
    if not EXAMPLE.exists():
        pytest.skip("the published examples are not here")
    settings = json.loads(EXAMPLE.read_text(encoding="utf-8"))["settings"]
    settings["ssh_public_key"] = KEY
    settings_of_record = normal(**settings)
    assert (settings_of_record["control_plane_size"], settings_of_record["ssh_public_key"]) == ("md", KEY)
    assert [group["gpus"] for group in settings_of_record["autoscaler_node_groups"]] == [0, 1]
    assert control_plane(settings_of_record).data_center == "us-dallas-1"
