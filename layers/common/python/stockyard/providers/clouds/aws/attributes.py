"""The attributes of a cloud account in AWS."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field, SecretStr, model_validator

from stockyard.domain.models.base import Fault, Input, Irremovable, check
from stockyard.providers.clouds.aws import fields
from stockyard.providers.clouds.aws.default_region import DEFAULT_REGION

_SECRET = re.compile(r"[A-Za-z0-9/+=]{16,128}")
KEYS = ("user_arn", "access_key_id", "secret_access_key")
"""What an account without a role has instead."""


def _secret(value: SecretStr) -> SecretStr:
    if not _SECRET.fullmatch(value.get_secret_value()):
        raise ValueError("must be a secret access key: 16 to 128 letters, digits, slashes and plus signs")
    return value


SecretAccessKey = Annotated[
    SecretStr,
    AfterValidator(_secret),
    Field(json_schema_extra={"minLength": 16, "maxLength": 128, "pattern": "^[A-Za-z0-9/+=]{16,128}$"}),
]


class AwsAttributes(Input):
    """The way into an AWS account: a role with an external id that Stockyard makes, or where the stage allows it an
    access key."""

    role_arn: fields.RoleArn | None = None
    """The role that Stockyard assumes."""
    region: fields.Region = DEFAULT_REGION
    """The region of clusters and nodes that name none."""
    volume_key_arn: fields.KeyArn | None = None
    """The key of AWS KMS that encrypts all disks in its region, of this account or of another one; without it the
    account's default key does."""
    user_arn: fields.UserArn | None = None
    """The user of the access key, where the stage allows one in place of a role."""
    access_key_id: fields.AccessKeyId | None = None
    """The id of the access key."""
    secret_access_key: SecretAccessKey | None = None
    """The secret of the access key; it is kept sealed and never shown."""

    @model_validator(mode="after")
    def _one_credential(self) -> AwsAttributes:
        key_parts = [name for name in KEYS if getattr(self, name) is not None]
        faults: list[Fault] = []
        if not key_parts and self.role_arn is None:
            faults.append((("role_arn",), "this field is required"))
        elif key_parts and self.role_arn is not None:
            faults += [((name,), "cannot be given beside role_arn: the role is the way in") for name in key_parts]
        elif key_parts and len(key_parts) < len(KEYS):
            missing = [name for name in KEYS if name not in key_parts]
            faults += [((name,), "an access key needs its user, its id and its secret") for name in missing]
        check(faults)
        return self


class AttributesPatch(Input):
    """Changed attributes; one that is absent stays. The way in cannot be changed from a role to an access key."""

    role_arn: Irremovable[fields.RoleArn] = None
    """The role that Stockyard assumes."""
    region: Irremovable[fields.Region] = None
    """The region of clusters and nodes that name none."""
    volume_key_arn: fields.KeyArn | None = None
    """The key of AWS KMS that encrypts new disks in its region; null for the account's default key."""
    user_arn: Irremovable[fields.UserArn] = None
    """The user of the access key."""
    access_key_id: Irremovable[fields.AccessKeyId] = None
    """The id of the access key."""
    secret_access_key: Irremovable[SecretAccessKey] = None
    """The secret of the access key; it is kept sealed and never shown."""
