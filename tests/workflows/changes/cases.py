"""A change of each field that a ready cluster may change, by driver: none is missing, or a test fails.

Which fields these are is the product's to say: ``CHANGEABLE`` of the models of settings, and the fields of the models
of what stands in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

from pydantic import BaseModel

from stockyard.domain.models.clusters.clusters import ClusterSettings
from stockyard.lifecycle.clusters.cluster_changes import SETS
from stockyard.providers.clusters.ec2.node_group_settings import NodeGroup
from stockyard.providers.clusters.ec2.settings import AwsSettings
from stockyard.providers.clusters.eks.settings import EksNodeGroup, EksSettings
from tests.unit.operations.clusters.members_world import ZONES

VERSION = "kubernetes_version"
TAINTS = [{"key": key, "value": "x", "effect": "NoSchedule"} for key in ("a", "b")]


def _subnets(zone: str) -> dict[str, str]:
    stem = f"subnet-0123456789abcde{zone[-1]}"
    return {"zone": zone, "private": f"{stem}0", "public": f"{stem}1"}


SUBNETS = [_subnets(zone) for zone in ZONES]
WEB: Mapping[str, Any] = {
    "name": "web",
    "role": "worker",
    "min_size": 2,
    "max_size": 4,
    "instance_types": ["m5.large", "m5.xlarge", "m6i.large"],
    "zones": list(ZONES[:2]),
    "taints": TAINTS,
}
STATIC: Mapping[str, Any] = {
    "name": "db", "role": "worker", "min_size": 1, "max_size": 2, "instance_types": ["m5.xlarge"],
}  # fmt: skip
CONTROL: Mapping[str, Any] = {
    "name": "control",
    "role": "control",
    "min_size": 3,
    "max_size": 3,
    "instance_types": ["t3.xlarge", "m5.xlarge"],
    "zones": list(ZONES),
}
CIDRS = ["198.51.100.0/24", "203.0.113.0/24", "192.0.2.0/24"]
PLAIN = {
    "control_plane_size": 3,
    "control_plane_instance_types": ["t3.xlarge", "m5.xlarge", "t3.2xlarge"],
    "zones": list(ZONES),
    "api_cidrs": CIDRS,
    "ssh_cidrs": CIDRS[:2],
    "bastion": {"enabled": True},
    "etcd_backup": {"keep": 7},
    "autoscaler_node_groups": [WEB, STATIC],
}
"""The settings of a cluster in a network of its own, whose control plane no group names."""
NAMED = {"vpc_id": "vpc-0123456789abcdef0", "subnets": SUBNETS, "autoscaler_node_groups": [CONTROL, WEB]}
"""Those of one in a given network, with a control group."""
SYSTEM: Mapping[str, Any] = {
    "name": "system",
    "role": "system",
    "instance_type": "m6i.xlarge",
    "count": 2,
    "min_size": 2,
    "max_size": 4,
    "zones": list(ZONES),
    "taints": TAINTS,
}
GPU: Mapping[str, Any] = {
    "name": "l4",
    "role": "gpu",
    "instance_type": "g6.xlarge",
    "zones": [ZONES[0]],
    "accelerator_type": "l4",
    "count": 1,
    "min_size": 1,
    "max_size": 2,
}
MANAGED = {
    "region_name": "us-east-1",
    "zones": list(ZONES),
    "public_access_cidrs": CIDRS,
    "node_groups": [SYSTEM, GPU],
}
BEGINNINGS: Mapping[str, tuple[str, Mapping[str, Any], int]] = {
    "plain": ("ec2", PLAIN, 3),
    "named": ("ec2", NAMED, 2),
    "managed": ("eks", MANAGED, 3),
}
"""By name: the driver, the settings, and how many workers there are at first."""


@dataclass(frozen=True)
class Case:
    """One change. ``refused``: it cannot be made. ``still``: it is none, since the order of a set says nothing."""

    field: str
    beginning: str
    patch: Mapping[str, Any]
    refused: bool = False
    still: bool = False
    label: str = ""

    @property
    def is_order(self) -> bool:
        """Whether it gives a list another order."""
        return self.label.startswith("order")

    def __str__(self) -> str:
        return f"{self.beginning} {self.field} {self.label}".rstrip()


@dataclass(frozen=True)
class _Group:
    """One group of a beginning, and what its fields may become. A field that is not here is refused."""

    beginning: str
    name: str
    model: type[BaseModel]
    values: Mapping[str, Sequence[Any]]
    besides: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What else of the group changes with a field, so that the group is whole."""
    whole: bool = True
    """Whether each field of the model has its case here."""

    @property
    def setting(self) -> str:
        return "node_groups" if self.beginning == "managed" else "autoscaler_node_groups"

    def patch(self, group: Mapping[str, Any] | None) -> dict[str, Any]:
        """The groups with that one in the place of this one; None: without it."""
        groups = BEGINNINGS[self.beginning][1][self.setting]
        changed = [group if each["name"] == self.name else each for each in groups]
        return {"settings": {self.setting: [each for each in changed if each is not None]}}

    def cases(self) -> Iterator[Case]:
        (own,) = (each for each in BEGINNINGS[self.beginning][1][self.setting] if each["name"] == self.name)
        for name in self.model.model_fields if self.whole else self.values:
            where = f"{self.setting}.{self.name}.{name}"
            if name not in self.values:
                yield Case(where, self.beginning, self.patch({**own, name: _REFUSED[name][self.name]}), refused=True)
            for number, value in enumerate(self.values.get(name, ())):
                changed = {**own, name: value, **self.besides.get(name, {})}
                yield Case(where, self.beginning, self.patch(changed), label=str(number))
            for number, order in enumerate(_orders(own.get(name))):
                patch = self.patch({**own, name: order})
                yield Case(where, self.beginning, patch, still=name in SETS, label=f"order {number}")
        yield Case(f"{self.setting}.{self.name}", self.beginning, self.patch(None), refused=own["role"] == "control")


_REFUSED: Mapping[str, Any] = {
    "role": {"web": "control", "control": "worker", "system": "gpu"},
    "max_price": {"control": {"percent": 50.0}},
    "update_strategy": {"control": {"type": "remove_first"}},
}
"""By field and group what a field may not become."""
_COMMON: Mapping[str, Sequence[Any]] = {
    "min_size": [1, 3],
    "max_size": [3, 2],
    "labels": [{"team": "a"}],
    "taints": [TAINTS[:1], []],
}
_GROUPS = (
    _Group(
        "plain",
        "web",
        NodeGroup,
        {
            **_COMMON,
            "name": ["site"],
            "max_size": [3],
            "instance_types": [["m5.large"], ["m6i.xlarge", "m5.large"], ["m6i.xlarge"]],
            "allocation_strategy": ["diversified"],
            "capacity_type": ["spot"],
            "zones": [[*ZONES], [ZONES[0]], [ZONES[2]], []],
            "max_price": [{"percent": 90.0}],
            "root_disk_gib": [200],
            "update_strategy": [{"type": "remove_first"}],
        },
        {"max_price": {"capacity_type": "spot"}},
    ),
    _Group("plain", "db", NodeGroup, {"zones": [[ZONES[0]], [ZONES[1]]], "min_size": [0, 2]}, whole=False),
    _Group(
        "named",
        "control",
        NodeGroup,
        {
            "name": ["masters"],
            "min_size": [5],
            "max_size": [5],
            "instance_types": [["m5.xlarge"], ["t3.xlarge"]],
            "labels": [{"team": "a"}],
            "taints": [TAINTS],
            "allocation_strategy": ["diversified"],
            "capacity_type": ["spot"],
            "zones": [[ZONES[0]]],
            "root_disk_gib": [200],
        },
        {"min_size": {"max_size": 5}, "max_size": {"min_size": 5}},
    ),
    _Group(
        "managed",
        "system",
        EksNodeGroup,
        {
            **_COMMON,
            "min_size": [1, 0],
            "builtin": [True],
            "name": ["other"],
            "instance_type": ["m5.xlarge"],
            "disk_gib": [200, None],
            "count": [3],
            "zones": [[ZONES[0], ZONES[1]], [], [ZONES[2]]],
            "fabric": ["efa"],
            "accelerator_type": ["x"],
            "capacity_reservation_id": ["cr-1234"],
        },
        {"capacity_reservation_id": {"zones": [ZONES[0]]}, "max_size": {"count": 2}},
    ),
)
_SETTINGS: Mapping[str, Mapping[str, Sequence[Any]]] = {
    "plain": {
        "api_cidrs": [CIDRS[:1]],
        "ssh_cidrs": [CIDRS],
        "bastion": [{"enabled": False}, {"enabled": True, "instance_type": "t3.small"}],
        "repave_approval": ["required"],
        "control_plane_size": [5],
        "control_plane_instance_type": ["m5.xlarge"],
        "control_plane_instance_types": [["m5.xlarge"], ["t3.xlarge"]],
        "etcd_backup": [{"keep": 9}, None],
        "etcd_snapshots": [9],
        "key_pair": ["other"],
        "nat_gateways": ["one"],
        "zones": [[*ZONES, "us-east-1d"]],
        "mirror": [False],
    },
    "named": {
        "subnets": [[*SUBNETS, _subnets("us-east-1d")]],
        "control_plane_size": [5],
        "control_plane_instance_types": [["m5.xlarge"]],
    },
    "managed": {
        "addon_versions": [{"coredns": "v1.11.1-eksbuild.1"}],
        "public_access_cidrs": [CIDRS[:1], []],
        "support": ["extended"],
        "mirror": [False],
        "endpoint": ["private"],
        "private_access_cidrs": [["10.0.0.0/8"]],
        "block_storage": [True],
        "control_plane_logs": [["api"]],
        "deletion_protection": [True],
    },
}
_WITH_SETTINGS: Mapping[str, Mapping[str, Any]] = {"endpoint": {"public_access_cidrs": []}}
"""Other settings that change with one, so that all are valid together."""
_BESIDE_SETTINGS: Mapping[str, Sequence[tuple[str, Mapping[str, Any]]]] = {
    name: [("kubernetes_version", {"kubernetes_version": "1.35"}), ("tags", {"tags": {"team": "a"}}),
           ("description", {"description": "other"})]
    for name in BEGINNINGS
}  # fmt: skip
MODELS: Mapping[str, type[ClusterSettings]] = {"ec2": AwsSettings, "eks": EksSettings}


def _orders(value: Any) -> list[Any]:
    """Each other order of a list of two to four."""
    if not isinstance(value, list) or not 2 <= len(value) <= 4:
        return []
    return [list(order) for order in permutations(value)][1:]


def cases() -> list[Case]:
    """Every case."""
    listed_cases = [
        Case(name, beginning, patch) for beginning, rows in _BESIDE_SETTINGS.items() for name, patch in rows
    ]
    for beginning, fields in _SETTINGS.items():
        own = BEGINNINGS[beginning][1]
        for name, values in fields.items():
            for number, value in enumerate(values):
                patch = {"settings": {name: value, **_WITH_SETTINGS.get(name, {})}}
                listed_cases.append(Case(name, beginning, patch, label=str(number)))
        for name, value in own.items():
            for number, order in enumerate(
                _orders(value) if name in MODELS[BEGINNINGS[beginning][0]].CHANGEABLE else ()
            ):
                still = name in SETS or "groups" in name
                listed_cases.append(
                    Case(name, beginning, {"settings": {name: order}}, still=still, label=f"order {number}")
                )
    return listed_cases + [case for group in _GROUPS for case in group.cases()]


def changeable_fields(driver: str) -> set[str]:
    """Every field that clusters of the driver may change, those of groups behind the name of their setting."""
    model = MODELS[driver]
    groups: Mapping[str, type[BaseModel]] = {"autoscaler_node_groups": NodeGroup, "node_groups": EksNodeGroup}
    fields = {name for name in model.CHANGEABLE if name not in groups} | ClusterSettings.model_fields.keys()
    for name in groups.keys() & model.CHANGEABLE:
        fields |= {f"{name}.{each}" for each in groups[name].model_fields}
    return fields
