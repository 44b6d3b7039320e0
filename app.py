"""The CDK app. ``cdk deploy --all -c stage=prod`` deploys a stage of ``cdk.json``; ``-c KEY=VALUE`` overrides a key."""

from __future__ import annotations

import os
import sys
from dataclasses import fields, replace

from stacks import concurrency, issuer
from stacks.config import StageConfig, check_region, load
from stacks.errors import ConfigError
from stacks.node import use_bundled_node

SECONDS = 5
"""For the connection and for the answer of AWS, each: a deployment does not wait for what it can do without."""


def read_concurrency(region: str) -> tuple[str, int]:
    """The account of the credentials at hand, and how many functions it runs at once in the region."""
    import boto3
    from botocore.config import Config

    config = Config(connect_timeout=SECONDS, read_timeout=SECONDS, retries={"total_max_attempts": 1})
    account = boto3.client("sts", region_name=region, config=config).get_caller_identity()["Account"]
    limits = boto3.client("lambda", region_name=region, config=config).get_account_settings()["AccountLimit"]
    return str(account), int(limits["ConcurrentExecutions"])


def main() -> int:
    """Build the stage that the context names. 2 for a mistake in its configuration."""
    use_bundled_node()
    from aws_cdk import App

    from stacks.application import build

    app = App()
    context = {field.name: app.node.try_get_context(field.name) for field in fields(StageConfig)}
    stage = context.pop("stage") or "dev"
    overrides = {key: value for key, value in context.items() if value is not None}
    try:
        config = load(stage, app.node.try_get_context("stages"), overrides)
        check_region(config.region or os.environ.get("CDK_DEFAULT_REGION", ""))
        if not config.concurrency:
            place = {"account": config.account, "region": config.region}
            config = replace(config, account_concurrency=concurrency.of_account(place, os.environ, read_concurrency))
        if app.node.try_get_context("check_issuer") not in (False, "false"):
            issuer.check(config.issuer)
        build(app, config, bundled=app.node.try_get_context("bundle") not in (False, "false"))
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    app.synth()
    return 0


if __name__ == "__main__":
    sys.exit(main())
