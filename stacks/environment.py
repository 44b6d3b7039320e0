"""The deployment target of a stage, and the environment variables of its functions."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from aws_cdk import Aws, Environment

from stacks.config import StageConfig
from stacks.errors import ConfigError
from stacks.functions import FUNCTIONS, most_waits
from stacks.names import Names
from stockyard.settings import Settings

MOST_BYTES = 4096
"""Of the names and values of a function's variables together."""
LONGEST_FILLED = 64
"""Letters of what a deployment fills in for one token: an account, a region, the id of an API."""
_TOKEN = re.compile(r"\$\{Token\[[^\]]*\]\}")
_WORKER_SECONDS = next(function.timeout for function in FUNCTIONS if function.name == "cluster_phases")
_CONFIGURED = {each.name for each in fields(StageConfig)}


def environment_of(config: StageConfig) -> Environment | None:
    """The account and region of the stage; None leaves both to the CDK CLI's login."""
    if not config.account and not config.region:
        return None
    return Environment(account=config.account or None, region=config.region or None)


def render(template: str, stream: str = "") -> str:
    """A resource template of ``permissions`` with the account and region of the deployment."""
    return template.format(partition=Aws.PARTITION, region=Aws.REGION, account=Aws.ACCOUNT_ID, stream=stream)


def variables(config: StageConfig, function: str, api_url: str) -> dict[str, str]:
    """The environment of one function: every field of ``stockyard.settings.Settings``, and the logger's names. The
    hashes of the origin's keys are there only where requests must come through CloudFront.

    Things are referred to by name where a reference would close a circle (function - workflow - function).
    """
    names = Names(config.stage)
    waits = most_waits(config.waits, config.concurrency)
    hashes = {"origin_key_hashes": ",".join(config.origin_key_hashes)} if config.origin_key_hashes else {}
    values: dict[str, Any] = {
        **{each.name: getattr(config, each.name) for each in fields(Settings) if each.name in _CONFIGURED},
        **hashes,
        "waits": waits,
        "tenant_waits": min(config.tenant_waits, waits),
        "table": names.table,
        "bus": names.bus,
        "api_url": api_url,
        "identity_admin_secret": names.identity_admin,
        "page_key_secret": names.page_key,
        "machine_key_secret": names.machine_key,
        "bucket": render(names.bucket),
        "secrets_key": names.secrets_key,
        "workflow_prefix": render("arn:{partition}:states:{region}:{account}:stateMachine:" + names.workflow("")),
        "catalog_function": names.function("catalog"),
        "principal_pattern": render("arn:{partition}:iam::{account}:role/" + names.role_pattern),
        "worker_seconds": _WORKER_SECONDS,
    }
    environment = {
        **{f"STOCKYARD_{name.upper()}": _text(value) for name, value in values.items()},
        "POWERTOOLS_SERVICE_NAME": function,
        "POWERTOOLS_LOG_LEVEL": config.log_level,
        # Else the first model of a process looks for plugins in every package that is installed.
        "PYDANTIC_DISABLE_PLUGINS": "__all__",
    }
    check_size(config.stage, function, environment)
    return environment


def size_of(environment: Mapping[str, str]) -> int:
    """The bytes of the variables as AWS counts them once everything that is known when they are deployed is filled in;
    what that is takes at most ``LONGEST_FILLED``."""
    return sum(
        len(name.encode()) + len(_TOKEN.sub("x" * LONGEST_FILLED, value).encode())
        for name, value in environment.items()
    )


def check_size(stage: str, function: str, environment: Mapping[str, str]) -> None:
    """``ConfigError`` for more than AWS takes: found here, not in the deployment."""
    size = size_of(environment)
    if size > MOST_BYTES:
        longest = sorted(environment, key=lambda name: -len(environment[name]))[:3]
        raise ConfigError(
            f"stages.{stage}: the environment of the function {function} has {size} bytes, and AWS takes {MOST_BYTES};"
            f" the longest are {', '.join(longest)}"
        )


def _text(value: Any) -> str:
    """A setting as ``stockyard.settings`` reads it."""
    if isinstance(value, str):
        return value
    return json.dumps(value)
