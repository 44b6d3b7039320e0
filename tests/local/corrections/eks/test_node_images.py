"""EKS's images in the local cloud: a public parameter for each, which leads to an image that EC2 shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from local.aws.corrections.eks.node_images import ROOT_DEVICE, node_images
from local.aws.corrections.eks.node_templates import image_id
from local.aws.corrections.eks.tables import release_version
from stockyard.providers.clouds.aws.catalog.images import GPU_PARAMETER
from stockyard.providers.nodes.ec2.managed import ARCHITECTURES, IMAGE_PARAMETER

REGION = "us-east-1"
KEYS = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region_name": REGION}


@pytest.fixture
def client() -> Iterator[Any]:
    with mock_aws(), node_images():
        yield lambda service: boto3.client(service, **KEYS)  # type: ignore[call-overload]


def value(client: Any, name: str) -> str:
    return str(client("ssm").get_parameter(Name=name)["Parameter"]["Value"])


@pytest.mark.parametrize("architecture", ARCHITECTURES.values())
def test_a_parameter_leads_to_an_image_of_its_architecture(client: Any, architecture: str) -> None:
    ec2 = client("ec2")
    before = ec2.describe_volumes()["Volumes"], len(ec2.describe_snapshots()["Snapshots"])
    name = value(client, IMAGE_PARAMETER.format("1.35", architecture, "standard"))
    (image,) = ec2.describe_images(ImageIds=[name])["Images"]
    assert (image["Architecture"], image["RootDeviceName"]) == (architecture, ROOT_DEVICE)
    assert value(client, IMAGE_PARAMETER.format("1.35", architecture, "standard")) == name
    assert value(client, IMAGE_PARAMETER.format("1.34", architecture, "standard")) != name
    assert (ec2.describe_volumes()["Volumes"], len(ec2.describe_snapshots()["Snapshots"])) == before


def test_node_groups_start_from_the_same_image(client: Any) -> None:
    names = {
        "AL2023_x86_64_STANDARD": "x86_64/standard",
        "AL2023_ARM_64_STANDARD": "arm64/standard",
        "AL2023_x86_64_NVIDIA": "x86_64/nvidia",
    }
    for kind, image_name in names.items():
        name = f"/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/{image_name}/recommended/image_id"
        assert value(client, name) == image_id(kind, release_version("1.35"), REGION)


@pytest.mark.parametrize("architecture", ["x86_64", "arm64"])
def test_aws_has_an_image_with_nvidias_driver(client: Any, architecture: str) -> None:
    name = value(client, GPU_PARAMETER.format(architecture))
    (image,) = client("ec2").describe_images(ImageIds=[name])["Images"]
    assert (image["Architecture"], image["RootDeviceName"]) == (architecture, "/dev/sda1")


@pytest.mark.parametrize(("version", "architecture"), [("1.12", "x86_64"), ("1.35", "riscv")])
def test_there_is_none_of_what_eks_does_not_have(client: Any, version: str, architecture: str) -> None:
    with pytest.raises(ClientError, match="ParameterNotFound"):
        value(client, IMAGE_PARAMETER.format(version, architecture, "standard"))
