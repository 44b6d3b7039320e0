"""The key by which disks are encrypted: the one that the account names, else its default one in the region."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from stockyard.domain.records import CloudAccount
from stockyard.errors import PermissionDenied
from stockyard.ports import Finding
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.sessions import account_number, partition

ATTRIBUTE = "volume_key_arn"
"""The attribute of a cloud account that names a key."""
_ACCOUNT = "/cloud_account_id"
_USE = ("kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:DescribeKey")
_SCALING = "role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"
_GRANTED = ("Encrypt", "Decrypt", "ReEncryptFrom", "ReEncryptTo", "GenerateDataKey", "GenerateDataKeyWithoutPlaintext")


def of_account(account: CloudAccount | None, region: str) -> str:
    """The ARN of the key that the account names for disks in the region; empty where it names none there: a key is of
    one region."""
    arn = str(account.attributes.get(ATTRIBUTE) or "") if account is not None else ""
    return arn if arn and arn.split(":")[3] == region else ""


def findings(calls: Calls, account: CloudAccount, *, is_scaled: bool) -> Iterator[Finding]:
    """Principals that the key of disks has to let in, where it is not AWS's. ``is_scaled``: machines are launched by
    EC2 Auto Scaling too, by a role that no policy of the account can give a key (its guide, "Required AWS KMS key
    policy for use with encrypted volumes")."""
    named = str(account.attributes.get(ATTRIBUTE) or "")
    key = of_account(account, calls.region)
    if named and not key:
        text = (
            f"The account's {ATTRIBUTE} is a key of {named.split(':')[3]}: disks in {calls.region} are encrypted by the"
            " account's default key there."
        )
        yield Finding(_ACCOUNT, text, warning=True)
    key = key or _default(calls)
    if not key:
        return
    is_central = key.split(":")[4] != account_number(account)
    if not is_scaled and not is_central:
        return  # the policy of a key of one's own usually lets the account's policies decide
    yield Finding(_ACCOUNT, _text(account, key, is_central=is_central, is_scaled=is_scaled), warning=True)


def statements(account: CloudAccount, *, is_scaled: bool) -> list[dict[str, Any]]:
    """The two statements for the policy of the key: who uses it, and who lets EC2 use it for a disk."""
    root = f"arn:{partition(account)}:iam::{account_number(account)}:"
    principal = {"AWS": f"{root}{_SCALING if is_scaled else 'root'}"}
    used = {"Sid": "UseForDisks", "Effect": "Allow", "Principal": principal, "Action": list(_USE), "Resource": "*"}
    granted = {
        "Sid": "LetEc2UseForDisks",
        "Effect": "Allow",
        "Principal": principal,
        "Action": ["kms:CreateGrant"],
        "Resource": "*",
        "Condition": {"Bool": {"kms:GrantIsForAWSResource": "true"}},
    }
    return [used, granted]


def _text(account: CloudAccount, key: str, *, is_central: bool, is_scaled: bool) -> str:
    text = f"Disks are encrypted by {key}, and its policy decides whether machines can start."
    if is_central:
        # A policy takes no role of a service in another account; that account lets it in by a grant.
        text += f" It is of another account: {_written(statements(account, is_scaled=False))} have to be in it."
    elif is_scaled:
        text += f" {_written(statements(account, is_scaled=True))} have to be in it."
    if is_central and is_scaled:
        grantee = f"arn:{partition(account)}:iam::{account_number(account)}:{_SCALING}"
        text += (
            " EC2 Auto Scaling, which starts the machines of node groups, is let in once from this account:"
            f" aws kms create-grant --key-id {key} --grantee-principal {grantee} --operations"
            f" {' '.join(_GRANTED)} DescribeKey CreateGrant"
        )
    return text


def _written(entries: list[dict[str, Any]]) -> str:
    return " and ".join(json.dumps(entry, separators=(",", ":")) for entry in entries)


def _default(calls: Calls) -> str:
    """The ARN of the account's default key in the region; empty where it is AWS's, or our role may not look."""
    try:
        key = str(calls.call("ec2", "get_ebs_default_kms_key_id").get("KmsKeyId") or "")
    except PermissionDenied:
        return ""
    return key if key.startswith("arn:") and ":key/" in key else ""
