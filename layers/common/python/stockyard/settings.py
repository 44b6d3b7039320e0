"""The environment, read once into a frozen object. A missing name is an error that says the name."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

OLDEST_MINOR = 30
"""Of Kubernetes 1: the agent's admission policy needs it."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a stage configures. Every function gets the same names; those it does not need may be empty."""

    table: str
    stage: str = "dev"
    bus: str = ""
    api_url: str = ""
    issuer: str = ""
    audience: str = "stockyard"
    """Of access tokens, which the API takes."""
    cluster_audience: str = "stockyard-cli"
    """Of ID tokens, which clusters take: the client that people log in with."""
    identity_admin_secret: str = ""
    """Name of our secret with ``{"client_id", "client_secret"}`` of the realm's admin client."""
    page_key_secret: str = ""
    """Name of our secret whose text signs page tokens."""
    secret_prefix: str = "stockyard/dev"  # noqa: S105 - a prefix of names
    provision_workflow: str = ""
    delete_workflow: str = ""
    provision_node_workflow: str = ""
    delete_node_workflow: str = ""
    power_node_workflow: str = ""
    name_prefix: str = "vantage"
    kubernetes_version: str = "1.34"
    vdeployer_url_template: str = ""
    principal_pattern: str = ""
    """ARN pattern of our functions' roles, for the trust policy in a tenant's account."""
    event_tenants: Mapping[str, str] = field(default_factory=dict)
    """AWS account of an event's envelope -> tenant."""
    visibility_seconds: int = 60
    """How long a cloud may hide what it just made."""
    worker_seconds: int = 120
    """How long one run of a phase may last; the phases function's time-out ends it then."""
    sweep_grace_seconds: int = 3600
    report_only: bool = False
    launch_seconds: int = 300
    """How long a node's machine may take to be made."""
    register_seconds: int = 900
    """How long its node may then take to join."""
    agent_busy_seconds: int = 10
    agent_quiet_seconds: int = 60
    """How soon a cluster's agent comes again: while it has something to do for a claim, and otherwise."""


def read(environment: Mapping[str, str] | None = None) -> Settings:
    """The settings of this process. Names are ``STOCKYARD_`` and the field in capitals.

    Raises ``KeyError`` for a missing table and ``ValueError`` for a value that cannot be read, with the name.
    """
    source = os.environ if environment is None else environment
    if not source.get("STOCKYARD_TABLE"):
        raise KeyError("STOCKYARD_TABLE is not set")

    def text(name: str, default: str = "") -> str:
        return source.get(f"STOCKYARD_{name}", "") or default

    def number(name: str, default: int) -> int:
        value = text(name, str(default))
        try:
            return int(value)
        except ValueError:
            raise ValueError(f"STOCKYARD_{name} is not a whole number: {value!r}") from None

    try:
        event_tenants = json.loads(text("EVENT_TENANTS", "{}"))
    except ValueError:
        raise ValueError("STOCKYARD_EVENT_TENANTS is not JSON") from None
    stage = text("STAGE", "dev")
    return Settings(
        table=source["STOCKYARD_TABLE"],
        stage=stage,
        bus=text("BUS"),
        api_url=text("API_URL").rstrip("/"),
        issuer=text("ISSUER").rstrip("/"),
        audience=text("AUDIENCE", "stockyard"),
        cluster_audience=text("CLUSTER_AUDIENCE", "stockyard-cli"),
        identity_admin_secret=text("IDENTITY_ADMIN_SECRET"),
        page_key_secret=text("PAGE_KEY_SECRET"),
        secret_prefix=text("SECRET_PREFIX", f"stockyard/{stage}"),
        provision_workflow=text("PROVISION_WORKFLOW"),
        delete_workflow=text("DELETE_WORKFLOW"),
        provision_node_workflow=text("PROVISION_NODE_WORKFLOW"),
        delete_node_workflow=text("DELETE_NODE_WORKFLOW"),
        power_node_workflow=text("POWER_NODE_WORKFLOW"),
        name_prefix=text("NAME_PREFIX", "vantage"),
        kubernetes_version=_minor(text("KUBERNETES_VERSION", "1.34")),
        vdeployer_url_template=text("VDEPLOYER_URL_TEMPLATE"),
        principal_pattern=text("PRINCIPAL_PATTERN"),
        event_tenants=event_tenants,
        visibility_seconds=number("VISIBILITY_SECONDS", 60),
        worker_seconds=number("WORKER_SECONDS", 120),
        sweep_grace_seconds=number("SWEEP_GRACE_SECONDS", 3600),
        report_only=text("REPORT_ONLY") == "true",
        launch_seconds=number("LAUNCH_SECONDS", 300),
        register_seconds=number("REGISTER_SECONDS", 900),
        agent_busy_seconds=number("AGENT_BUSY_SECONDS", 10),
        agent_quiet_seconds=number("AGENT_QUIET_SECONDS", 60),
    )


def _minor(version: str) -> str:
    found = re.fullmatch(r"1\.(\d{1,2})", version)
    if found is None or int(found[1]) < OLDEST_MINOR:
        raise ValueError(
            f"STOCKYARD_KUBERNETES_VERSION is {version!r}; it must be a minor of at least 1.{OLDEST_MINOR}, which the"
            " agent of a cluster needs"
        )
    return version
