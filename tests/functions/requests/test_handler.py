"""Owner of the request that an event is: what the table says of the sending account, at that moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from functions.requests import handler
from stockyard import wiring
from stockyard.domain.platform import PLATFORM
from stockyard.errors import InvalidInput, PreconditionFailed
from stockyard.operations.cloud_accounts.event_accounts import event_accounts_view, set_event_accounts
from stockyard.operations.idempotency_keys import IdempotencyKeys
from stockyard.ports import Create, Store
from tests.harness.worlds.inprocess import Context
from tests.unit.operations.conftest import World, make_world

ACCOUNT, OTHER = "2" * 12, "3" * 12


class Bus:
    """Keeps the answers."""

    def __init__(self) -> None:
        self.answers: list[tuple[str, dict[str, Any]]] = []

    def publish_all(self, answers: Sequence[tuple[str, dict[str, Any]]]) -> None:
        self.answers += answers


@pytest.fixture
def world() -> World:
    return make_world()


@pytest.fixture
def bus(world: World, monkeypatch: pytest.MonkeyPatch) -> Bus:
    bus = Bus()

    def store(tenant: str) -> Store:
        return world.registry.platform() if tenant == PLATFORM else world.registry.store(tenant)

    monkeypatch.setattr(wiring, "store", store)
    monkeypatch.setattr(wiring, "services", lambda _: world.services)
    monkeypatch.setattr(wiring, "clock", lambda: world.clock)
    monkeypatch.setattr(wiring, "keys_of", lambda tenant: IdempotencyKeys(store(tenant)))
    monkeypatch.setattr(wiring, "audit", lambda tenant, record: store(tenant).commit(Create(record)))
    monkeypatch.setattr(wiring, "bus", lambda: bus)
    return bus


def platform(world: World) -> Any:
    services = world.services
    parts = {name: getattr(services, name) for name in services.__slots__ if name != "store"}
    return type(services)(**parts, store=world.registry.platform())


def delete(account: str, id: str) -> str:
    event = {"id": id, "account": account, "detail-type": "DeleteCluster", "detail": {"cluster": "demo"}}
    return str(handler.lambda_handler(event, Context("requests", id))["answer"])


def test_an_event_is_a_request_of_the_tenant_that_its_account_is_listed_for(world: World, bus: Bus) -> None:
    world.create("demo")
    assert delete(ACCOUNT, "one") == "RequestRefused"
    assert bus.answers[0][1]["problem"]["error_type"] == "Forbidden"
    set_event_accounts(platform(world), "acme", [ACCOUNT], 0)
    assert delete(OTHER, "two") == "RequestRefused"
    assert delete(ACCOUNT, "three") == "RequestAccepted"
    set_event_accounts(platform(world), "acme", [], 1)
    assert delete(ACCOUNT, "four") == "RequestRefused"


def test_the_platform_says_which_rights_requests_have(world: World, bus: Bus) -> None:
    provider = {"name": "lab", "kind": "simulated", "spec": {}}
    event = {"account": ACCOUNT, "detail-type": "CreateNodeProvider", "detail": {"body": provider}}
    for version, rights in enumerate(("operator", "admin")):
        set_event_accounts(platform(world), "acme", [ACCOUNT], version, rights)
        handler.lambda_handler({**event, "id": rights}, Context("requests", rights))
        kind, detail = bus.answers[-1]
        refusal = detail["problem"]["error_type"] if kind == "RequestRefused" else None
        assert refusal == (None if rights == "admin" else "Forbidden"), detail


def test_an_account_is_one_tenants_also_when_two_are_set_at_once(world: World) -> None:
    services = platform(world)
    set_event_accounts(services, "acme", [ACCOUNT], 0)
    with pytest.raises(InvalidInput) as refusal:
        set_event_accounts(services, "globex", [OTHER, ACCOUNT], 0)
    assert [problem.pointer for problem in refusal.value.errors] == ["/accounts/1"]
    assert event_accounts_view(services, "globex")["version"] == 0, "nothing of a refused list is stored"
    with pytest.raises(PreconditionFailed):
        set_event_accounts(services, "acme", [], 0)
    commit = services.store.commit

    def overtaken(*writes: Any) -> None:
        services.store.commit = commit
        set_event_accounts(services, "globex", [OTHER], 0)
        commit(*writes)

    services.store.commit = overtaken
    with pytest.raises(PreconditionFailed):
        set_event_accounts(services, "acme", [ACCOUNT, OTHER], 1)
    assert event_accounts_view(services, "acme")["accounts"] == [ACCOUNT]
    assert event_accounts_view(services, "globex")["accounts"] == [OTHER]
