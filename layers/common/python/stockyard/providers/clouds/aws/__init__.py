"""AWS: accounts by a role that we assume or by an access key, and what drivers and sources in AWS share."""

from __future__ import annotations

from stockyard.domain.cloud_kinds import CloudKind
from stockyard.ports import Cloud
from stockyard.ports.runs import Runner
from stockyard.providers.clouds.aws.default_region import DEFAULT_REGION
from stockyard.providers.descriptors import CloudDescriptor, ProviderTools

__all__ = ["DEFAULT_REGION", "DESCRIPTOR", "KIND", "runner"]


def _make(tools: ProviderTools) -> Cloud:
    import boto3

    from stockyard.providers.clouds.aws.cloud import AwsCloud

    return AwsCloud(tools.settings, boto3.Session, tools.secrets)


def runner(tools: ProviderTools) -> Runner:
    """Machines that carry out programs of node providers in accounts of AWS."""
    import boto3

    from stockyard.providers.clouds.aws.runs.buildspec import Release
    from stockyard.providers.clouds.aws.runs.runner import CodeBuildRunner
    from stockyard.providers.clouds.aws.sessions import Sessions

    settings = tools.settings
    release = Release(settings.tofu_url, settings.tofu_digest or None)
    return CodeBuildRunner(Sessions(boto3.Session, secrets=tools.secrets), settings.name_prefix, release)


_MODELS = f"{__name__}.attributes"
KIND = CloudKind(
    "aws",
    "AWS",
    f"{_MODELS}:AwsAttributes",
    f"{_MODELS}:AttributesPatch",
    reserved_tags=("aws:", "kubernetescluster"),
    secrets=("secret_access_key",),
)
DESCRIPTOR = CloudDescriptor(KIND, _make)
