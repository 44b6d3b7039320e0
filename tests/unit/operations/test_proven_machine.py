"""Who has signed: only an instance of the cluster's node role in the account, each part of its name being checked."""

from __future__ import annotations

import pytest

from stockyard.domain.records import CloudAccount
from stockyard.errors import Unauthorized
from stockyard.operations.proven_machine import proven_machine
from stockyard.ports import MachineIdentity
from tests.unit.operations.conftest import World

ACCOUNT = "222222222222"
MACHINE = "i-0123456789abcdef0"


def identity(
    role: str, account: str = ACCOUNT, kind: str = "assumed-role", session: str = f"/{MACHINE}"
) -> MachineIdentity:
    return MachineIdentity(account, f"arn:aws:sts::{account}:{kind}/{role}{session}", "x")


def test_an_instance_is_named_by_its_session(world: World) -> None:
    cluster = world.create()
    account = world.services.store.get(CloudAccount, "1")
    role = f"vantage-{cluster.client_id}-node-role"
    assert proven_machine(world.services, account, cluster, identity(role)) == MACHINE


@pytest.mark.parametrize(
    "changed",
    [
        {"account": "333333333333"},
        {"role": "vantage-another-client-node-role"},
        {"kind": "federated-user"},
        {"session": ""},
        {"session": f"/{MACHINE}/more"},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_any_other_signature_is_refused(world: World, changed: dict[str, str]) -> None:
    cluster = world.create()
    account = world.services.store.get(CloudAccount, "1")
    caller = identity(**{"role": f"vantage-{cluster.client_id}-node-role", **changed})
    with pytest.raises(Unauthorized):
        proven_machine(world.services, account, cluster, caller)


@pytest.mark.parametrize("arn", ["", "i-0123456789abcdef0", f"arn:aws:iam::{ACCOUNT}:root"])
def test_what_is_no_assumed_role_is_refused(world: World, arn: str) -> None:
    cluster = world.create()
    account = world.services.store.get(CloudAccount, "1")
    with pytest.raises(Unauthorized):
        proven_machine(world.services, account, cluster, MachineIdentity(ACCOUNT, arn, "x"))


def test_nobody_is_proven_in_an_account_that_is_not_there(world: World) -> None:
    cluster = world.create()
    with pytest.raises(Unauthorized):
        proven_machine(world.services, None, cluster, identity(f"vantage-{cluster.client_id}-node-role"))
