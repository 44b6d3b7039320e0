"""Names of what a tenant's template makes for runs, in each region that has it."""

from __future__ import annotations

import hashlib

from stockyard.domain.records import CloudAccount
from stockyard.providers.clouds.aws.sessions import account_number, partition

SECRETS = "stockyard-runs/"
"""Beginning of the names of the secrets that a run may read."""


def project_name(account: CloudAccount, prefix: str) -> str:
    """The project. An AWS account may be registered more than once: each registration has a project of its own."""
    return f"{prefix}-runs-{hashlib.sha256(account.external_id.encode()).hexdigest()[:8]}"


def role_name(account: CloudAccount, prefix: str, region: str) -> str:
    """The role of the project's builds. IAM has no regions, so its name has one."""
    return f"{project_name(account, prefix)}-{region}"


def log_group(account: CloudAccount, prefix: str) -> str:
    """Group of CloudWatch Logs that builds print to."""
    return f"/stockyard/{project_name(account, prefix)}"


def project_arn(account: CloudAccount, prefix: str, region: str) -> str:
    """ARN of the project."""
    name = project_name(account, prefix)
    return f"arn:{partition(account)}:codebuild:{region}:{account_number(account)}:project/{name}"


def log_arn(account: CloudAccount, prefix: str, region: str) -> str:
    """ARN of the streams of the log group."""
    group = log_group(account, prefix)
    return f"arn:{partition(account)}:logs:{region}:{account_number(account)}:log-group:{group}:log-stream:*"
