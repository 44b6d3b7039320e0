"""Bound of a session's rights: nothing to what another cluster of ours has, and nothing with a role of one.

The tenant's role reaches every cluster that Stockyard has made in the account. A session works for one of them, so it
is taken with a policy of its own. STS takes 2,048 characters, of which it packs what it is given.
"""

from __future__ import annotations

import json
from typing import Any

from stockyard.domain.records import CloudAccount
from stockyard.providers.clouds.aws.kinds.iam import PATH
from stockyard.providers.clouds.aws.resources.child_names import UNIQUE
from stockyard.providers.clouds.aws.sessions import account_number, partition

MOST_CHARACTERS = 2048
"""What STS takes of a session's policy."""


def only(account: CloudAccount, prefix: str, client_id: str) -> str:
    """The policy of a session for the cluster of that client id, in a stage with this prefix of names."""
    path = f"arn:{partition(account)}:iam::{account_number(account)}:role{PATH}"
    # The readable part of a long client id is cut in names of roles.
    own_roles = f"{path}{prefix}-*{client_id[-UNIQUE:]}-*"
    statements = [
        {"Effect": "Allow", "Action": "*", "NotResource": [f"{path}*"]},
        {"Effect": "Allow", "Action": "*", "Resource": [own_roles]},
        *(_deny(f"aws:{side}Tag/{prefix}-cluster", client_id) for side in ("Resource", "Request")),
    ]
    return json.dumps({"Version": "2012-10-17", "Statement": statements}, separators=(",", ":"))


def _deny(key: str, client_id: str) -> dict[str, Any]:
    """Deny everything on a thing with the tag of a cluster, and of another one. What carries none is not meant."""
    condition = {"StringNotEquals": {key: client_id}, "Null": {key: "false"}}
    return {"Effect": "Deny", "Action": "*", "Resource": "*", "Condition": condition}
