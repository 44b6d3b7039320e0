"""The image that machines start from."""

from __future__ import annotations

from typing import Any

from stockyard.errors import VendorNotFound, VendorRefused
from stockyard.providers.clouds.aws.calls import Calls

CANONICAL = "099720109477"
"""AWS account of Ubuntu's publisher."""
IMAGE_PARAMETER = "/aws/service/canonical/ubuntu/server/24.04/stable/current/{}/hvm/ebs-gp3/ami-id"
IMAGE_GIB = 8
"""What the publisher's image takes of a root volume: no smaller one starts from it."""
ROOT_DEVICE = "/dev/sda1"
"""Where that image has its root volume."""
METADATA = {"HttpTokens": "required", "HttpPutResponseHopLimit": 1, "HttpEndpoint": "enabled"}
"""How every machine may read about itself: by IMDSv2, and not from a container."""


def root_volume(device: str, gib: int) -> dict[str, Any]:
    """The mapping of a machine's one disk, which goes with it."""
    disk = {"VolumeSize": gib, "VolumeType": "gp3", "Encrypted": True, "DeleteOnTermination": True}
    return {"DeviceName": device, "Ebs": disk}


def current(calls: Calls, *, arm: bool) -> str:
    """The current Ubuntu 24.04 image, by the publisher's public parameter, else by its newest image."""
    name = IMAGE_PARAMETER.format("arm64" if arm else "amd64")
    try:
        return str(calls.call("ssm", "get_parameter", Name=name)["Parameter"]["Value"])
    except VendorNotFound:
        pass
    # Regions without the parameters.
    images = calls.pages(
        "ec2",
        "describe_images",
        "Images",
        Owners=[CANONICAL],
        Filters=[
            {"Name": "name", "Values": ["ubuntu/images/*"]},
            {"Name": "architecture", "Values": ["arm64" if arm else "x86_64"]},
        ],
    )
    ordered = sorted(images, key=lambda i: ("24.04" in i["Name"], i.get("CreationDate", ""), i["ImageId"]))
    if not ordered:
        raise VendorRefused(f"{calls.region} shows no Ubuntu image", hint="Choose another region or instance type.")
    return str(ordered[-1]["ImageId"])
