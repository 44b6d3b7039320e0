"""The image that machines start from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stockyard.errors import PermissionDenied, VendorNotFound, VendorRefused
from stockyard.providers.clouds.aws.calls import Calls

CANONICAL = "099720109477"
"""AWS account of Ubuntu's publisher."""
IMAGE_PARAMETER = "/aws/service/canonical/ubuntu/server/24.04/stable/current/{}/hvm/ebs-gp3/ami-id"
GPU_PARAMETER = "/aws/service/deeplearning/ami/{}/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id"
"""AWS's own image of the same Ubuntu with NVIDIA's driver, its container toolkit and containerd, as the guide to its
Deep Learning AMIs names the parameter."""
GPU_FAMILIES: Mapping[str, frozenset[str]] = {
    "amd64": frozenset(
        ("g4dn", "g5", "g6", "gr6", "g6e", "g7", "p4d", "p4de", "p5", "p5e", "p5en", "p6-b200", "p6-b300")
    ),
    "arm64": frozenset(("g5g", "p6e-gb200", "p6e-gb300")),
}
"""Families whose GPUs that image drives, by architecture, as its release notes of 2026 list them."""
GPU_DISK_GIB = 100
"""The root volume of a machine of that image that names no larger one: the driver and the toolkits take the most of a
usual one."""
_GPU = "-gpu"
IMAGE_GIB = 8
"""What the publisher's image takes of a root volume: no smaller one starts from it."""
ROOT_DEVICE = "/dev/sda1"
"""Where that image has its root volume."""
METADATA = {"HttpTokens": "required", "HttpPutResponseHopLimit": 1, "HttpEndpoint": "enabled"}
"""How every machine may read about itself: by IMDSv2, and not from a container."""


def kind_of(instance_type: str, architecture: str) -> str:
    """Kind of image that a machine of the type starts from: ``amd64``, or ``amd64-gpu`` for the one with NVIDIA's
    driver."""
    return architecture + _GPU if has_gpu_image(instance_type) else architecture


def has_gpu_image(instance_type: str) -> bool:
    """Whether machines of the type start from the image with NVIDIA's driver."""
    family = instance_type.partition(".")[0]
    return any(family in families for families in GPU_FAMILIES.values())


def architecture_of(kind: str) -> str:
    """The architecture of an image of the kind."""
    return kind.removesuffix(_GPU)


def with_driver(calls: Calls) -> dict[str, str]:
    """The images with NVIDIA's driver, by their kind; a region may have none of one architecture."""
    return parameters(
        calls, {f"{name}{_GPU}": GPU_PARAMETER.format(own) for own, name in (("x86_64", "amd64"), ("arm64", "arm64"))}
    )


def parameters(calls: Calls, names: Mapping[str, str]) -> dict[str, str]:
    """Values of the public parameters of these names, by the same keys; one that the region does not have is left
    out."""
    values: dict[str, str] = {}
    for key, name in names.items():
        try:
            values[key] = str(calls.call("ssm", "get_parameter", Name=name)["Parameter"]["Value"])
        except (VendorNotFound, PermissionDenied):
            # An account whose template is of an earlier release may not ask for those with a driver.
            continue
    return values


def root_volume(device: str, gib: int, key: str = "") -> dict[str, Any]:
    """The mapping of a machine's one disk, which goes with it. ``key`` is the ARN of the key that encrypts it; empty:
    the account's default one."""
    disk: dict[str, Any] = {"VolumeSize": gib, "VolumeType": "gp3", "Encrypted": True, "DeleteOnTermination": True}
    return {"DeviceName": device, "Ebs": {**disk, **by_key(key)}}


def by_key(key: str) -> dict[str, str]:
    """The field of a disk that names its key; none for the account's default one."""
    return {"KmsKeyId": key} if key else {}


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
