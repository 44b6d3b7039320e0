"""Machines with EFA stand close to each other, and each of their network cards that has EFA has an interface."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from moto.ec2.models.instance_types import INSTANCE_TYPES

from stockyard.providers.clouds.aws.policies import template_versions
from stockyard.providers.clusters.eks import names
from stockyard.providers.clusters.eks.nodes import launch_templates
from tests.unit.providers.clusters.eks.conftest import H100, change

Run = Callable[[str], None]
EFA = {**H100, "fabric": "efa", "count": 0}


def placement_groups(eks: Any) -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = eks.tenant().client("ec2").describe_placement_groups()["PlacementGroups"]
    return groups


def template(eks: Any, suffix: str = "") -> dict[str, Any]:
    (version,) = (
        eks.tenant()
        .client("ec2")
        .describe_launch_template_versions(LaunchTemplateName=names.part(eks.cluster, f"lt-h100{suffix}"))[
            "LaunchTemplateVersions"
        ]
    )
    data: dict[str, Any] = version["LaunchTemplateData"]
    return data


def test_a_group_with_efa_has_a_placement_group_that_goes_with_it(eks: Any, run: Run) -> None:
    change(eks, node_groups=[EFA])
    run("node_groups")
    (placement,) = placement_groups(eks)
    assert (placement["Strategy"], placement["GroupName"]) == ("cluster", names.part(eks.cluster, "pg-h100"))
    tags = {tag["Key"]: tag["Value"] for tag in placement["Tags"]}
    assert (tags["stockyard:installation"], tags["stockyard:key"]) == ("inst-1", "placement_group/h100")
    assert template(eks)["Placement"] == {"GroupName": placement["GroupName"]}
    # Another disk is another generation, with a placement group of its own; the former one goes with its machines.
    change(eks, node_groups=[{**EFA, "disk_gib": 200}])
    eks.ensure("node_groups")
    assert template(eks, ".2")["Placement"] == {"GroupName": names.part(eks.cluster, "pg-h100.2")}
    assert len(placement_groups(eks)) == 1
    change(eks)
    eks.ensure("node_groups")
    assert placement_groups(eks) == []


def test_a_placement_group_that_is_gone_is_made_anew_with_its_group(eks: Any, run: Run) -> None:
    change(eks, node_groups=[EFA])
    run("node_groups")
    (placement,) = placement_groups(eks)
    eks.tenant().client("ec2").delete_placement_group(GroupName=placement["GroupName"])
    eks.later(120)
    eks.ensure("node_groups")
    assert [group["GroupName"] for group in placement_groups(eks)] == [names.part(eks.cluster, "pg-h100.2")]


@pytest.mark.parametrize(
    "group",
    [
        {**H100},
        {**EFA, "zones": ["us-east-1a", "us-east-1b"]},
    ],
)
def test_a_group_that_cannot_have_one_has_none(eks: Any, run: Run, group: dict[str, Any]) -> None:
    change(eks, node_groups=[group])
    run("node_groups")
    assert placement_groups(eks) == []
    assert "Placement" not in template(eks)


def test_an_account_with_an_earlier_template_goes_on_without(
    eks: Any, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = template_versions.Deployed(template_versions.PLACEMENT - 1)
    monkeypatch.setattr(template_versions, "deployed", lambda *_: old)
    change(eks, node_groups=[EFA])
    run("node_groups")
    assert placement_groups(eks) == []
    assert len(template(eks)["NetworkInterfaces"]) == 32


def test_what_somebody_left_of_ours_is_swept(eks: Any, run: Run) -> None:
    change(eks, node_groups=[EFA])
    run("node_groups")
    things = eks.cloud.tagged(eks.account, "inst-1", "acme", ["us-east-1"])
    assert [thing.kind for thing in things].count("placement_group") == 1


@pytest.mark.parametrize(
    ("name", "cards", "first"),
    [
        ("p5.48xlarge", 32, "efa"),
        ("p5en.48xlarge", 16, "efa"),
        ("p6-b200.48xlarge", 8, "efa"),
        ("trn1.32xlarge", 8, "efa"),
        ("g6e.48xlarge", 4, "efa"),
        ("g6.8xlarge", 1, "efa"),
        ("p6-b300.48xlarge", 17, None),
    ],
)
def test_each_card_that_has_efa_has_an_interface(name: str, cards: int, first: str | None) -> None:
    """As EC2 describes the types; the first card of one of them has no EFA, and carries IP all the same."""
    described = launch_templates.interfaces(INSTANCE_TYPES[name]["NetworkInfo"], ["sg-1"])
    assert [entry.get("InterfaceType") for entry in described] == [first, *["efa-only"] * (cards - 1)]
    assert [entry["NetworkCardIndex"] for entry in described] == list(range(cards))
    assert [entry["DeviceIndex"] for entry in described] == [0, *[1] * (cards - 1)]
