"""The concurrency of functions in an account, read from AWS when a stage is deployed, where no setting says it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

Read = Callable[[str], tuple[str, int]]
"""Gives the account of the credentials at hand, and its concurrency in a region; the stacks themselves ask nobody."""


def of_account(place: Mapping[str, Any], environment: Mapping[str, str], read: Read) -> int:
    """The concurrency of the account that is deployed into; 0 where it cannot be read, which a line says.

    ``place``: ``account`` and ``region`` of the stage, empty where it names none. ``environment`` is the process's: the
    CDK CLI says in it which account and region its credentials are of, and where it does not, nothing is deployed.
    """
    account = str(place.get("account") or environment.get("CDK_DEFAULT_ACCOUNT") or "")
    region = str(place.get("region") or environment.get("CDK_DEFAULT_REGION") or "")
    if not account or not region:
        return 0
    try:
        owner, quota = read(region)
    except Exception as error:
        # Whatever is wrong with the credentials, the deployment goes on: the CDK CLI may have others.
        reason = type(error).__name__
    else:
        if owner == account:
            return quota
        reason = f"the credentials at hand are of {owner}"
    sys.stderr.write(
        f"The concurrency of functions in {account} could not be read ({reason}); of the ten of a new account two may"
        " wait for news. -c account_concurrency=... says it.\n"
    )
    return 0
