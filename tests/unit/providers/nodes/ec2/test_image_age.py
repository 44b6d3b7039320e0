"""The publisher's images are looked for again after some days; nodes that run and images of tenants stay."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from stockyard.providers.nodes.ec2 import node_class

DAY = 86_400


@pytest.fixture
def publisher(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The current image by architecture."""
    images = {"amd64": "ami-0000000000000000a", "arm64": "ami-0000000000000000b"}
    monkeypatch.setattr(node_class, "current", lambda _, *, arm: images["arm64" if arm else "amd64"])
    return images


def test_environment_is_stale_after_the_days_of_the_stage(hand: Any, publisher: dict[str, str]) -> None:
    hand.prepare()
    stale = hand.source.is_stale
    assert not stale(hand.environment, hand.provider, hand.yard.now + timedelta(days=6))
    assert stale(hand.environment, hand.provider, hand.yard.now + timedelta(days=7))
    changed = replace(hand.provider, generation=hand.provider.generation + 1)
    assert stale(hand.environment, changed, hand.yard.now)
    earlier_release = replace(hand.environment, outputs={**hand.environment.outputs, "found_on": ""})
    assert stale(earlier_release, hand.provider, hand.yard.now)


def test_image_of_the_tenant_is_never_stale(hand: Any, build: Any, publisher: dict[str, str]) -> None:
    hand.provider = build.provider(image=hand.calls.describe_images()["Images"][0]["ImageId"])
    hand.prepare()
    assert not hand.source.is_stale(hand.environment, hand.provider, hand.yard.now + timedelta(days=400))


def test_next_machine_starts_from_the_current_image_and_running_ones_stay(
    hand: Any, publisher: dict[str, str], sent: list[dict[str, Any]]
) -> None:
    def images_of(request: dict[str, Any]) -> set[str]:
        return {override["ImageId"] for override in request["LaunchTemplateConfigs"][0]["Overrides"]}

    hand.prepare()
    hand.launch()
    (running,) = hand.instances()
    publisher["amd64"] = "ami-0000000000000000c"
    hand.later(8 * DAY)
    assert hand.source.is_stale(hand.environment, hand.provider, hand.yard.now)
    hand.prepare()
    hand.claim = replace(hand.claim, id=f"{hand.claim.id[:-1]}B", name="workers-2")
    hand.ledger = type(hand.ledger)(hand.claim, "launch", hand.yard.now)
    hand.launch()
    assert [images_of(request) for request in sent] == [{"ami-0000000000000000a"}, {"ami-0000000000000000c"}]
    assert running["InstanceId"] in {instance["InstanceId"] for instance in hand.instances()}
    (template,) = hand.templates()
    name = template["LaunchTemplateName"]
    (version,) = hand.calls.describe_launch_template_versions(LaunchTemplateName=name)["LaunchTemplateVersions"]
    assert version["LaunchTemplateData"]["ImageId"] == "ami-0000000000000000c"
