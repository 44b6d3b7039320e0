"""The public parameters that name EKS's images of Amazon Linux 2023 and AWS's images with NVIDIA's driver, and those
images: moto knows neither."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from moto.core.utils import utcnow
from moto.ec2.models import ec2_backends
from moto.ec2.models.amis import Ami
from moto.ssm.models import Parameter, ParameterDict

from local.aws.corrections.eks.node_templates import image_id
from local.aws.corrections.eks.tables import VERSIONS, release_version

_NAME = re.compile(
    r"/aws/service/eks/optimized-ami/(?P<version>1\.\d+)/amazon-linux-2023/(?P<architecture>x86_64|arm64)"
    r"/(?P<variant>standard|nvidia)/recommended/image_id"
)
_DRIVER_NAME = re.compile(
    r"/aws/service/deeplearning/ami/(?P<architecture>x86_64|arm64)/base-oss-nvidia-driver-gpu-ubuntu-24\.04/latest/ami-id"
)
_ARCHITECTURES = {"x86_64": "x86_64", "arm64": "ARM_64"}
"""As EKS writes them in the types of its images."""
PUBLISHER = "602401143452"
"""The account of EKS's images in most regions."""
ROOT_DEVICE = "/dev/xvda"


@contextmanager
def node_images() -> Iterator[None]:
    """While it is open, SSM has a parameter for each image of a version that EKS has, and EC2 shows that image."""
    loading = _with_images(ParameterDict._check_loading_status)
    with patch.object(ParameterDict, "_check_loading_status", loading):
        yield


def _with_images(original: Callable[[ParameterDict, str], None]) -> Callable[[ParameterDict, str], None]:
    def load(parameters: ParameterDict, key: str) -> None:
        original(parameters, key)
        if dict.__contains__(parameters, key):
            return
        region, account = parameters.region_name, parameters.account_id
        match, driver = _NAME.fullmatch(str(key or "")), _DRIVER_NAME.fullmatch(str(key or ""))
        if match is not None and match["version"] in VERSIONS:
            image = _shown_image(account, region, **match.groupdict())
        elif driver is not None:
            image = _driver_image(account, region, driver["architecture"])
        else:
            return
        dict.__setitem__(parameters, key, [_parameter(account, key, image)])

    return load


def _shown_image(account: str, region: str, version: str, architecture: str, variant: str) -> str:
    """The image that node groups of this type start from too, shown by the account's EC2."""
    release = release_version(version)
    image = image_id(f"AL2023_{_ARCHITECTURES[architecture]}_{variant.upper()}", release, region)
    ec2 = ec2_backends[account][region]
    if image not in ec2.amis:
        ec2.amis[image] = _image(ec2, image, f"amazon-eks-node-al2023-{architecture}-{variant}-{release}", architecture)
    return image


def _driver_image(account: str, region: str, architecture: str) -> str:
    """AWS's image with NVIDIA's driver, shown by the account's EC2."""
    name = f"Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 24.04) {architecture}"
    image, ec2 = image_id(name, "latest", region), ec2_backends[account][region]
    if image not in ec2.amis:
        ec2.amis[image] = _image(ec2, image, name, architecture, "/dev/sda1")
    return image


def _image(ec2: Any, image: str, name: str, architecture: str, root_device: str = ROOT_DEVICE) -> Ami:
    ami = Ami(
        ec2,
        image,
        name=name,
        owner_id=PUBLISHER,
        owner_alias="amazon",
        public=True,
        virtualization_type="hvm",
        architecture=architecture,
        root_device_type="ebs",
        root_device_name=root_device,
        region_name=f"{ec2.region_name}a",
    )
    # Its disk is the publisher's, and no volume or snapshot of the account that looks at the image.
    ec2.volumes.pop(ami.ebs_snapshot.volume.id, None)
    ec2.snapshots.pop(ami.ebs_snapshot.id, None)
    return ami


def _parameter(account: str, name: str, image: str) -> Parameter:
    return Parameter(
        account_id=account,
        name=name,
        value=image,
        parameter_type="String",
        description=None,
        allowed_pattern=None,
        keyid=None,
        last_modified_date=utcnow().timestamp(),
        version=1,
        data_type="aws:ec2:image",
    )
