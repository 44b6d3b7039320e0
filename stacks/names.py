"""What our own AWS resources are called. One place, so that a permission and the thing it names cannot drift apart."""

from __future__ import annotations

from dataclasses import dataclass

PROVISION = "provision-cluster"
DELETE = "delete-cluster"
PROVISION_NODE = "provision-node"
DELETE_NODE = "delete-node"
POWER_NODE = "power-node"

RUNNERS = {
    PROVISION: "cluster_phases",
    DELETE: "cluster_phases",
    PROVISION_NODE: "node_phases",
    DELETE_NODE: "node_phases",
    POWER_NODE: "node_phases",
}
"""Workflow -> the function that does its phases."""

SWEEP_STOPPED, OUTBOX_REFUSED = "SweepStopped", "OutboxRefused"
"""What the reaper logs when it stops and the relay when something is refused, and the metrics that are made of it."""

TABLE_OUTPUT = "TableName"
"""Output of the data stack."""
API_URL_OUTPUT = "ApiUrl"
BUS_OUTPUT = "BusName"
"""Outputs of the service stack."""


@dataclass(frozen=True, slots=True)
class Names:
    """The names of one stage. A stage name is 1 to 12 lower-case letters and digits, so no stage is another's prefix
    followed by a hyphen."""

    stage: str

    @property
    def data_stack(self) -> str:
        return f"Stockyard-{self.stage}-Data"

    @property
    def service_stack(self) -> str:
        return f"Stockyard-{self.stage}"

    @property
    def prefix(self) -> str:
        return f"stockyard-{self.stage}"

    @property
    def table(self) -> str:
        return self.prefix

    @property
    def bus(self) -> str:
        return self.prefix

    @property
    def api(self) -> str:
        return self.prefix

    @property
    def secret_prefix(self) -> str:
        return f"stockyard/{self.stage}"

    @property
    def identity_admin(self) -> str:
        """Secret with the realm's admin client; the operator fills it before the first deploy."""
        return f"{self.secret_prefix}/identity-admin"

    @property
    def page_key(self) -> str:
        return f"{self.secret_prefix}/page-key"

    @property
    def cluster_secrets(self) -> str:
        """Prefix of the secrets that are made per cluster at run time."""
        return f"{self.secret_prefix}/clusters"

    @property
    def role_pattern(self) -> str:
        """Pattern of the names CloudFormation gives our functions' roles."""
        return f"{self.service_stack}-*"

    def function(self, name: str) -> str:
        return f"{self.prefix}-{name.replace('_', '-')}"

    def function_log_group(self, name: str) -> str:
        return f"/aws/lambda/{self.function(name)}"

    def workflow(self, name: str) -> str:
        return f"{self.prefix}-{name}"

    def workflow_log_group(self, name: str) -> str:
        return f"/aws/vendedlogs/states/{self.workflow(name)}"

    @property
    def api_log_group(self) -> str:
        return f"/aws/vendedlogs/apis/{self.api}"

    def failures(self, name: str) -> str:
        """Queue that takes what the function could not handle."""
        return f"{self.function(name)}-failures"

    @property
    def metrics(self) -> str:
        """Namespace of our own metrics."""
        return f"Stockyard/{self.stage}"

    def alarm(self, what: str) -> str:
        return f"{self.prefix}-{what}"
