"""The names of our own AWS resources, in one place, so that permissions and resources have the same names."""

from __future__ import annotations

from stacks.workflows import FUNCTIONS
from stockyard.lifecycle.change_phases import CHANGES as KINDS_OF_CHANGES
from stockyard.lifecycle.phases import CREATE_CLUSTER, DELETE_CLUSTER, PROCEDURES, RETAG_CLUSTER
from stockyard.metrics import namespace

PROVISION_NODE, DELETE_NODE = "provision-node", "delete-node"
CREATIONS, DELETIONS = (
    tuple(procedure.workflow for (kind, _), procedure in PROCEDURES.items() if kind == operation)
    for operation in (CREATE_CLUSTER, DELETE_CLUSTER)
)
"""The workflows that create and that delete clusters, one for each kind of rows."""
CHANGES = tuple(
    procedure.workflow for (kind, _), procedure in PROCEDURES.items() if kind in (*KINDS_OF_CHANGES, RETAG_CLUSTER)
)
"""The workflows that change ready clusters."""

RUNNERS = {procedure.workflow: FUNCTIONS[procedure.subject] for procedure in PROCEDURES.values()}
"""The function that runs the phases of each workflow."""

TABLE_OUTPUT = "TableName"
"""Output of the data stack."""
API_URL_OUTPUT = "ApiUrl"
BUS_OUTPUT = "BusName"
ORIGIN_OUTPUT = "OriginHost"
"""Outputs of the service stack."""


class Names:
    """The names of one stage. A stage name is 1 to 12 lower-case letters and digits, so no stage is another's prefix
    followed by a hyphen."""

    def __init__(self, stage: str) -> None:
        self.data_stack = f"Stockyard-{stage}-Data"
        self.service_stack = f"Stockyard-{stage}"
        self.edge_stack = f"Stockyard-{stage}-Edge"
        self.prefix = self.table = self.bus = self.api = f"stockyard-{stage}"
        self.metrics = namespace(stage)
        """Namespace of our own metrics."""
        self.bucket = f"{self.prefix}-{{account}}-{{region}}"
        """Bucket, as a template: a name of S3 is there once in the world."""
        self.secret_prefix = f"stockyard/{stage}"
        self.identity_admin = f"{self.secret_prefix}/identity-admin"
        """Secret with the realm's admin client; the operator fills it before the first deploy."""
        self.page_key = f"{self.secret_prefix}/page-key"
        self.machine_key = f"{self.secret_prefix}/machine-key"
        self.origin_key = f"{self.secret_prefix}/origin-key"
        """Secret in us-east-1 that CloudFront sends with each request; the operator makes it."""
        self.secrets_key = f"alias/{self.prefix}-cluster-secrets"
        """Of the key that secrets of clusters are sealed with; they stand in the table."""
        self.role_pattern = f"{self.service_stack}-*"
        """Pattern of the names CloudFormation gives our functions' roles."""
        self.api_log_group = f"/aws/vendedlogs/apis/{self.api}"

        self.edge_log_group = f"/aws/vendedlogs/cloudfront/{self.prefix}"
        self.web_acl_log_group = f"aws-waf-logs-{self.prefix}"
        """AWS WAF takes no name that begins otherwise."""

    def function(self, name: str) -> str:
        return f"{self.prefix}-{name.replace('_', '-')}"

    def function_log_group(self, name: str) -> str:
        return f"/aws/lambda/{self.function(name)}"

    def workflow(self, name: str) -> str:
        return f"{self.prefix}-{name}"

    def workflow_log_group(self, name: str) -> str:
        return f"/aws/vendedlogs/states/{self.workflow(name)}"

    def failures(self, name: str) -> str:
        """Queue for the events that the function failed to handle."""
        return f"{self.function(name)}-failures"

    def alarm(self, name: str) -> str:
        return f"{self.prefix}-{name}"
