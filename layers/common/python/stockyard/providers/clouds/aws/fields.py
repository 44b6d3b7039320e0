"""Kinds of text that documents of several providers in AWS share."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from stockyard.domain.models.fields import distinct
from stockyard.domain.models.patterns import worded

OTHER_PARTITIONS = ("cn-", "us-gov-", "us-iso", "eu-isoe-", "eusc-")
"""How the names of regions begin that are not of AWS's commercial partition."""
ONLY_COMMERCIAL = "Stockyard runs in AWS's commercial regions alone: GovCloud and China trust no account of these."
"""Why what is of another partition is refused. See decision 410."""


def _commercial_arn(value: str) -> str:
    if not value.startswith("arn:aws:"):
        raise ValueError(ONLY_COMMERCIAL)
    return value


def _commercial_region(value: str) -> str:
    if value.startswith(OTHER_PARTITIONS):
        raise ValueError(ONLY_COMMERCIAL)
    return value


_REGION = worded(r"^[a-z]{2,8}(-[a-z]{2,12}){1,3}-[0-9]{1,2}$", "an AWS region such as us-east-1")
_INSTANCE_TYPE = worded(r"^[a-z][a-z0-9-]{0,30}\.[a-z0-9-]{1,30}$", "an EC2 instance type such as t3.xlarge")
_KEY_PAIR = worded(
    r"^[!-~]([ -~]{0,253}[!-~])?$",
    "the name of an EC2 key pair: printable ASCII characters, no space at the ends",
)
_BUCKET = worded(
    r"^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$",
    "the name of an S3 bucket: 3 to 63 lower-case letters, digits and hyphens, a letter or digit at each end",
)
_VPC = worded(r"^vpc-([0-9a-f]{8}|[0-9a-f]{17})$", "the id of a VPC: vpc- and 8 or 17 hexadecimal digits")
_SUBNET = worded(r"^subnet-([0-9a-f]{8}|[0-9a-f]{17})$", "the id of a subnet: subnet- and 8 or 17 hexadecimal digits")
_ROLE_ARN = worded(
    r"^arn:(aws|aws-cn|aws-us-gov):iam::[0-9]{12}:role/[A-Za-z0-9_+=,.@/-]{1,512}$",
    "the ARN of an IAM role, arn:aws:iam::<account>:role/<name>",
)
_USER_ARN = worded(
    r"^arn:(aws|aws-cn|aws-us-gov):iam::[0-9]{12}:(root|user/[A-Za-z0-9_+=,.@/-]{1,512})$",
    "the ARN of an IAM user, arn:aws:iam::<account>:user/<name>, or of the root user",
)
_KEY_ARN = worded(
    r"^arn:(aws|aws-cn|aws-us-gov):kms:[a-z0-9-]{1,32}:[0-9]{12}:key/(mrk-)?[0-9a-f-]{32,36}$",
    "the ARN of a KMS key, arn:aws:kms:<region>:<account>:key/<id>; no alias",
)
_ACCESS_KEY = worded(r"^AKIA[A-Z0-9]{12,28}$", "the id of a long-term access key, which begins with AKIA")
_ZONE = worded(r"^[a-z0-9-]{1,63}$", "the name of a zone, such as us-west-2a")
_IMAGE = worded(r"^ami-([0-9a-f]{8}|[0-9a-f]{17})$", "the id of a machine image: ami- and 8 or 17 hexadecimal digits")

Region = Annotated[str, StringConstraints(max_length=32, pattern=_REGION), AfterValidator(_commercial_region)]
InstanceType = Annotated[str, StringConstraints(max_length=63, pattern=_INSTANCE_TYPE)]
InstanceTypes = Annotated[
    list[InstanceType],
    Field(min_length=1, max_length=50, json_schema_extra={"uniqueItems": True}),
    AfterValidator(distinct),
]
KeyPair = Annotated[str, StringConstraints(max_length=255, pattern=_KEY_PAIR)]
Bucket = Annotated[str, StringConstraints(min_length=3, max_length=63, pattern=_BUCKET)]
VpcId = Annotated[str, StringConstraints(pattern=_VPC)]
SubnetId = Annotated[str, StringConstraints(pattern=_SUBNET)]
UserArn = Annotated[str, StringConstraints(max_length=600, pattern=_USER_ARN), AfterValidator(_commercial_arn)]
AccessKeyId = Annotated[str, StringConstraints(pattern=_ACCESS_KEY)]
RoleArn = Annotated[str, StringConstraints(max_length=600, pattern=_ROLE_ARN), AfterValidator(_commercial_arn)]
KeyArn = Annotated[str, StringConstraints(max_length=160, pattern=_KEY_ARN)]
ImageId = Annotated[str, StringConstraints(pattern=_IMAGE)]
Zone = Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=_ZONE)]
