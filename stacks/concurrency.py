"""The concurrency of functions in an account, read from AWS when a stage is deployed, where no setting says it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from stacks.config import StageConfig

SECONDS = 5
"""For the connection and for the answer, each: a deployment does not wait for what it can do without."""
Read = Callable[[str], tuple[str, int]]


def read_from_aws(region: str) -> tuple[str, int]:
    """The account of the credentials at hand, and how many functions it runs at once in the region."""
    # A deployment alone needs it, and has it; the one import of it in the stacks.
    import boto3
    from botocore.config import Config

    config = Config(connect_timeout=SECONDS, read_timeout=SECONDS, retries={"total_max_attempts": 1})
    account = boto3.client("sts", region_name=region, config=config).get_caller_identity()["Account"]
    limits = boto3.client("lambda", region_name=region, config=config).get_account_settings()["AccountLimit"]
    return str(account), int(limits["ConcurrentExecutions"])


def of_account(account_region: Mapping[str, Any], environment: Mapping[str, str], read: Read = read_from_aws) -> int:
    """The concurrency of the account that is deployed into; 0 where it cannot be read, which a line says.

    ``account_region``: ``account`` and ``region`` of the stage, empty where it names none. ``environment`` is the
    process's: the CDK CLI says in it which account and region its credentials are of, and where it does not, nothing
    is deployed.
    """
    account = str(account_region.get("account") or environment.get("CDK_DEFAULT_ACCOUNT") or "")
    region = str(account_region.get("region") or environment.get("CDK_DEFAULT_REGION") or "")
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


def with_quota(config: StageConfig, environment: Mapping[str, str]) -> StageConfig:
    """The stage with the concurrency of its account, unless a setting says it."""
    if config.concurrency:
        return config
    account_region = {"account": config.account, "region": config.region}
    return replace(config, account_concurrency=of_account(account_region, environment))
