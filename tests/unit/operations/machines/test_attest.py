"""A machine is identified only if it has the role of the cluster in the cluster's account."""

from __future__ import annotations

import pytest

from stockyard.domain.records import CloudAccount
from stockyard.errors import Unauthorized
from stockyard.operations.machines.attest import proven_machine
from stockyard.ports import MachineIdentity
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.conftest import World

ACCOUNT = "222222222222"
MACHINE = "i-0123456789abcdef0"


@pytest.mark.parametrize("role", ["node-role", "ctrl-role"])
def test_machine_of_cluster_is_identified(world: World, role: str) -> None:
    cluster = world.create()
    account = world.services.store.get(CloudAccount, "1")
    caller = MachineIdentity(ACCOUNT, f"vantage-{cluster.client_id}-{role}", MACHINE)
    assert proven_machine(world.services, account, cluster, caller) == MACHINE


@pytest.mark.parametrize("changed", [{"account": "333333333333"}, {"role": "vantage-another-client-node-role"}])
def test_machine_of_other_account_or_role_is_refused(world: World, changed: dict[str, str]) -> None:
    cluster = world.create()
    account = world.services.store.get(CloudAccount, "1")
    own = {"account": ACCOUNT, "role": f"vantage-{cluster.client_id}-node-role", "machine_id": MACHINE}
    with pytest.raises(Unauthorized):
        proven_machine(world.services, account, cluster, MachineIdentity(**{**own, **changed}))


def test_missing_account_or_cloud_is_refused(world: World) -> None:
    cluster = world.create()
    account = world.services.store.get(CloudAccount, "1")
    caller = MachineIdentity(ACCOUNT, f"vantage-{cluster.client_id}-node-role", MACHINE)
    with pytest.raises(Unauthorized):
        proven_machine(world.services, None, cluster, caller)
    with pytest.raises(Unauthorized):
        proven_machine(with_ports(world.services, clouds={}), account, cluster, caller)
