"""The CDK app. ``cdk deploy --all -c stage=prod`` deploys a stage of ``cdk.json``; ``-c KEY=VALUE`` overrides a key."""

from __future__ import annotations

import os
import sys
from dataclasses import fields

from stacks import concurrency, issuer
from stacks.config import StageConfig, check_region, load
from stacks.errors import ConfigError
from stacks.node import use_bundled_node


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
        config = concurrency.with_quota(load(stage, app.node.try_get_context("stages"), overrides), os.environ)
        check_region(config.region or os.environ.get("CDK_DEFAULT_REGION", ""))
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
