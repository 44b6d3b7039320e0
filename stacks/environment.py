"""Where a stage is deployed, and what its functions are told."""

from __future__ import annotations

import json

from aws_cdk import Aws, Environment

from stacks.config import StageConfig
from stacks.functions import FUNCTIONS
from stacks.names import DELETE, DELETE_NODE, POWER_NODE, PROVISION, PROVISION_NODE, Names

_WORKER_SECONDS = next(function.timeout for function in FUNCTIONS if function.name == "cluster_phases")


def environment_of(config: StageConfig) -> Environment | None:
    """The account and region of the stage; None leaves both to the CDK CLI's login."""
    if not config.account and not config.region:
        return None
    return Environment(account=config.account or None, region=config.region or None)


def render(template: str, stream: str = "") -> str:
    """A resource template of ``permissions`` with the account and region of the deployment."""
    return template.format(partition=Aws.PARTITION, region=Aws.REGION, account=Aws.ACCOUNT_ID, stream=stream)


def variables(config: StageConfig, function: str, api_url: str) -> dict[str, str]:
    """The environment of one function: every field of ``stockyard.settings.Settings``, and the logger's names.

    Things are referred to by name where a reference would close a circle (function - workflow - function).
    """
    names = Names(config.stage)
    workflow = "arn:{partition}:states:{region}:{account}:stateMachine:"
    stockyard = {
        "TABLE": names.table,
        "STAGE": config.stage,
        "BUS": names.bus,
        "API_URL": api_url,
        "ISSUER": config.issuer,
        "AUDIENCE": config.audience,
        "CLUSTER_AUDIENCE": config.cluster_audience,
        "IDENTITY_ADMIN_SECRET": names.identity_admin,
        "PAGE_KEY_SECRET": names.page_key,
        "SECRET_PREFIX": names.secret_prefix,
        "PROVISION_WORKFLOW": render(workflow + names.workflow(PROVISION)),
        "DELETE_WORKFLOW": render(workflow + names.workflow(DELETE)),
        "PROVISION_NODE_WORKFLOW": render(workflow + names.workflow(PROVISION_NODE)),
        "DELETE_NODE_WORKFLOW": render(workflow + names.workflow(DELETE_NODE)),
        "POWER_NODE_WORKFLOW": render(workflow + names.workflow(POWER_NODE)),
        "NAME_PREFIX": config.name_prefix,
        "KUBERNETES_VERSION": config.kubernetes_version,
        "VDEPLOYER_URL_TEMPLATE": config.vdeployer_url_template,
        "PRINCIPAL_PATTERN": render("arn:{partition}:iam::{account}:role/" + names.role_pattern),
        "EVENT_TENANTS": json.dumps(dict(config.event_tenants), sort_keys=True),
        "VISIBILITY_SECONDS": str(config.visibility_seconds),
        "WORKER_SECONDS": str(_WORKER_SECONDS),
        "SWEEP_GRACE_SECONDS": str(config.sweep_grace_seconds),
        "LAUNCH_SECONDS": str(config.launch_seconds),
        "REGISTER_SECONDS": str(config.register_seconds),
        "AGENT_BUSY_SECONDS": str(config.agent_busy_seconds),
        "AGENT_QUIET_SECONDS": str(config.agent_quiet_seconds),
        "REPORT_ONLY": "true" if config.report_only else "false",
    }
    return {
        **{f"STOCKYARD_{name}": value for name, value in stockyard.items()},
        "POWERTOOLS_SERVICE_NAME": function,
        "POWERTOOLS_LOG_LEVEL": config.log_level,
    }
