"""Which instance of a cluster a signed identity is: the check that every machine without a token goes through."""

from __future__ import annotations

from stockyard.domain.records import CloudAccount, Cluster
from stockyard.errors import Unauthorized
from stockyard.operations.services import Services
from stockyard.ports import MachineIdentity

UNRECORDED = "The machine is not recorded (yet). Try again."


def proven_machine(services: Services, account: CloudAccount | None, cluster: Cluster, caller: MachineIdentity) -> str:
    """The id of the instance that signed. ``Unauthorized`` unless it has the cluster's node role in that account.

    EC2 names an instance's session after the instance, so nobody can choose it.
    """
    expected = str(account.attributes.get("role_arn", "")).split(":")[4:5] if account else []
    role = f"{services.rules.name_prefix}-{cluster.client_id}-node-role"
    parts = caller.arn.split(":")
    resource = parts[5].split("/") if len(parts) == 6 else []
    if [caller.account] != expected or resource[:2] != ["assumed-role", role] or len(resource) != 3:
        raise Unauthorized("The request was not signed by a machine of this cluster.")
    return resource[2]
