"""Findings of live checks of a cluster's settings."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.providers.clouds.aws.catalog import images


def test_image_that_machines_cannot_start_from_is_found_at_dry_run(yard: Any) -> None:
    every = yard.tenant().client("ec2").describe_images()["Images"]
    described = [image for image in every if image.get("Platform") != "windows"]
    (windows, *_) = [image["ImageId"] for image in every if image.get("Platform") == "windows"]
    fits, elsewhere = (
        next(image["ImageId"] for image in described if (image["RootDeviceName"] == "/dev/sda1") is expected)
        for expected in (True, False)
    )

    def findings(image: str) -> list[str]:
        checked = yard.with_settings(image=image).provider.inspect(yard.work("account"))
        return [finding.detail for finding in checked if finding.pointer == "/settings/image" and not finding.warning]

    assert findings(fits) == []
    assert "RDP (port 3389) is for Windows images" in findings(windows)[0]
    assert findings(elsewhere) == [f"{elsewhere} has its root disk elsewhere than at /dev/sda1."]
    assert findings("ami-00000000") == ["There is no image ami-00000000 in us-east-1 that the account may use."]


def test_inspection_names_pointer_of_each_fault(yard: Any) -> None:
    groups = [{"name": "w", "role": "worker", "instance_types": ["t3.large", "x9.huge"]}]
    yard.with_settings(
        key_pair="none", control_plane_instance_type="q1.none", autoscaler_node_groups=groups, vpc_id="vpc-00000000"
    )
    warning_by_pointer = {f.pointer: f.warning for f in yard.provider.inspect(yard.work("account"))}
    assert warning_by_pointer == {
        "/settings/key_pair": False,
        "/settings/control_plane_instance_type": False,
        "/settings/autoscaler_node_groups/0/instance_types/1": False,
        "/settings/vpc_id": False,
    }


@pytest.mark.parametrize("region", ["us-east-9", "mars-north-1"])
def test_inspection_refuses_unknown_region(yard: Any, region: str) -> None:
    yard.with_settings(region_name=region)
    findings = list(yard.provider.inspect(yard.work("account")))
    assert [(f.pointer, f.warning) for f in findings] == [
        ("/settings/region_name", True),
        ("/settings/region_name", False),
    ]
    assert region in findings[1].detail


def test_types_for_whose_architecture_there_is_no_image_are_found_at_dry_run(
    yard: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = yard.tenant().client("ec2").describe_images()["Images"]
    amd = next(
        image["ImageId"]
        for image in every
        if (image["RootDeviceName"], image["Architecture"], image.get("Platform")) == ("/dev/sda1", "x86_64", None)
    )

    def findings(**settings: Any) -> list[tuple[str, str]]:
        checked = yard.with_settings(**{"image": None, **settings}).provider.inspect(yard.work("account"))
        return [(finding.pointer, finding.detail) for finding in checked if not finding.warning]

    pointer = "/settings/control_plane_instance_type"
    assert findings(image=amd, control_plane_instance_type="t3.medium") == []
    assert findings(image=amd, control_plane_instance_type="t4g.medium") == [
        (pointer, f"t4g.medium is of arm64, and {amd} is an image for x86_64.")
    ]
    none_there = [(pointer, "t4g.medium is of arm64, for which us-east-1 has no image of Ubuntu.")]
    assert findings(control_plane_instance_type="t4g.medium") == none_there
    monkeypatch.setattr(images, "current", lambda *_, **__: "ami-arm")
    assert findings(control_plane_instance_type="t4g.medium") == []
