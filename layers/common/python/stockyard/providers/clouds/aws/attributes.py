"""The attributes of a cloud account in AWS."""

from __future__ import annotations

from stockyard.domain.models.base import Input, Irremovable
from stockyard.providers.clouds.aws import DEFAULT_REGION, fields


class AwsAttributes(Input):
    """The role that Stockyard assumes, with an external id that it makes, and the account's default region."""

    role_arn: fields.RoleArn
    region: fields.Region = DEFAULT_REGION


class AttributesPatch(Input):
    """Changed attributes; one that is absent stays."""

    role_arn: Irremovable[fields.RoleArn] = None
    region: Irremovable[fields.Region] = None
