"""The deployment target of a stage, and the environment variables of its functions."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from aws_cdk import Aws, Environment

from stacks.config import StageConfig
from stacks.functions import FUNCTIONS
from stacks.names import Names
from stockyard.settings import Settings

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
    hashes = {"origin_key_hashes": ",".join(config.origin_key_hashes)} if config.origin_key_hashes else {}
    values: dict[str, Any] = {
        **{each.name: getattr(config, each.name) for each in fields(Settings) if each.name in _CONFIGURED},
        **hashes,
        "table": names.table,
        "bus": names.bus,
        "api_url": api_url,
        "identity_admin_secret": names.identity_admin,
        "page_key_secret": names.page_key,
        "machine_key_secret": names.machine_key,
        "secrets_key": names.secrets_key,
        "workflow_prefix": render("arn:{partition}:states:{region}:{account}:stateMachine:" + names.workflow("")),
        "catalog_function": names.function("catalog"),
        "principal_pattern": render("arn:{partition}:iam::{account}:role/" + names.role_pattern),
        "worker_seconds": _WORKER_SECONDS,
    }
    return {
        **{f"STOCKYARD_{name.upper()}": _text(value) for name, value in values.items()},
        "POWERTOOLS_SERVICE_NAME": function,
        "POWERTOOLS_LOG_LEVEL": config.log_level,
        # Else the first model of a process looks for plugins in every package that is installed.
        "PYDANTIC_DISABLE_PLUGINS": "__all__",
    }


def _text(value: Any) -> str:
    """A setting as ``stockyard.settings`` reads it."""
    if isinstance(value, str):
        return value
    return json.dumps(value)
