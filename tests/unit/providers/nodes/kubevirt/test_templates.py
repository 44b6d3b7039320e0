"""Merges of templates, and documents of machines made from generated ones: each is taken by KubeVirt's real schema."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from local.kubernetes.definitions import KUBEVIRT, definitions
from local.kubernetes.schema.structural import misfit, whole
from local.kubernetes.schema.values import faults
from local.kubevirt import virtual_machine_faults
from stockyard.providers.nodes.kubevirt.properties import faults as setting_faults
from stockyard.providers.nodes.kubevirt.templates import BY_NAME, merged, template_of
from stockyard.providers.nodes.kubevirt.virtual_machines import document
from tests.harness.kubevirt.host import IMAGE
from tests.harness.kubevirt.templates import COUNT, NAMES, generated, generated_machine, settings

GOLDEN = json.loads(Path(__file__).with_name("merges.json").read_text(encoding="utf-8"))
SCHEMA = next(
    version["schema"]["openAPIV3Schema"]
    for each in definitions(KUBEVIRT)
    if each["metadata"]["name"] == "virtualmachines.kubevirt.io"
    for version in each["spec"]["versions"]
)


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["about"])
def test_a_change_is_merged_as_the_page_says(case: Mapping[str, Any]) -> None:
    base, change = copy.deepcopy(case["base"]), copy.deepcopy(case["change"])
    assert merged(base, change) == case["result"]
    assert (base, change) == (case["base"], case["change"]), "neither is changed"
    assert template_of({"virtualMachineTemplate": base}, {"mergeVirtualMachineTemplate": change}) == case["result"]
    assert template_of({"virtualMachineTemplate": base}, {"virtualMachineTemplate": change}) == change


def independent(base: Any, change: Any, path: tuple[str, ...] = ()) -> Any:
    """The same merge, written once more by other means."""
    if isinstance(change, dict):
        parts = dict(base) if isinstance(base, dict) else {}
        for key in [key for key, value in change.items() if value is None]:
            parts.pop(key, None)
        values = {key: value for key, value in change.items() if value is not None}
        return parts | {key: independent(parts.get(key), value, (*path, key)) for key, value in values.items()}
    if isinstance(change, list) and path in BY_NAME:
        entries = {entry["name"]: entry for entry in (base or [])}
        for entry in change:
            entries[entry["name"]] = independent(entries.get(entry["name"], {}), entry)
        return list(entries.values())
    return change


def test_generated_templates_are_merged_alike_and_taken_by_the_real_schema(
    seed: int, record_property: Callable[[str, object], None]
) -> None:
    chance = random.Random(seed)
    for number in range(COUNT):
        base, change, settled = generated(chance), generated(chance), settings(chance)
        expected = independent(base, change)
        assert merged(base, change) == expected, number
        assert list(setting_faults(settled)) == []
        machine = generated_machine(chance, base, change, settled)
        assert misfit(machine, whole(SCHEMA)) is None, number
        assert [str(fault) for fault in faults(machine, whole(SCHEMA))] == [], number
        assert virtual_machine_faults(machine) == [], number
        names = [disk["name"] for disk in machine["spec"]["template"]["spec"]["domain"]["devices"]["disks"]]
        assert names[-2:] == ["rootdisk", "cloudinitdisk"]
        assert machine["spec"]["runStrategy"] == "Always"
        assert "running" not in machine["spec"]
    record_property("figure:kubevirt_templates", COUNT)


def test_a_machine_is_as_large_as_its_node_type_says() -> None:
    template = {"spec": {"template": {"spec": {"domain": {
        "cpu": {"cores": 1, "sockets": 4, "model": "host-model"},
        "memory": {"guest": "1Gi"},
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "x/y": "1"}},
    }}}}}  # fmt: skip
    machine = document(template, NAMES, {"name": "a", "resources": {"cpu": "2500m", "memory": "8Gi"}}, IMAGE)
    domain = machine["spec"]["template"]["spec"]["domain"]
    assert domain["cpu"] == {"cores": 3, "model": "host-model"}
    assert domain["memory"] == {"guest": "8Gi"}
    assert domain["resources"] == {"requests": {"cpu": "2500m", "memory": "8Gi"}, "limits": {"x/y": "1"}}


def test_volumes_of_a_template_have_a_name_for_each_machine() -> None:
    template = {
        "spec": {
            "dataVolumeTemplates": [{"metadata": {"name": "data"}, "spec": {"source": {"blank": {}}, "storage": {}}}],
            "template": {"spec": {"domain": {"devices": {}}, "volumes": [
                {"name": "one", "dataVolume": {"name": "data"}},
                {"name": "two", "persistentVolumeClaim": {"claimName": "data"}},
                {"name": "three", "persistentVolumeClaim": {"claimName": "shared"}},
                {"name": "cloudinitdisk", "emptyDisk": {"capacity": "1Gi"}},
            ]}},
        }
    }  # fmt: skip
    machine = document(template, NAMES, {"name": "a"}, {}, has_network_data=True)
    (volume,) = machine["spec"]["dataVolumeTemplates"]
    assert volume["metadata"]["name"] == "stockyard-a-1-data"
    assert volume["metadata"]["labels"] == dict(NAMES.marks)
    volumes = {each["name"]: each for each in machine["spec"]["template"]["spec"]["volumes"]}
    assert volumes["one"]["dataVolume"] == {"name": "stockyard-a-1-data"}
    assert volumes["two"]["persistentVolumeClaim"] == {"claimName": "stockyard-a-1-data"}
    assert volumes["three"]["persistentVolumeClaim"] == {"claimName": "shared"}
    secret = {"name": "stockyard-a-1-first-boot"}
    assert volumes["cloudinitdisk"]["cloudInitNoCloud"] == {"secretRef": secret, "networkDataSecretRef": secret}
    assert "stockyard.dev/generation" not in machine["spec"]["template"]["metadata"]["labels"]
