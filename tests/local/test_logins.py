"""People at a simulated control plane: whom its authentication configuration lets in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.identity.server import IdentityServer
from local.kubernetes.logins import logins
from local.kubernetes.people import Person, Webhook, reviewed
from stockyard.machines.on_machine.stockyard_machine_member import authentication


@pytest.fixture
def identity() -> Iterator[IdentityServer]:
    server = IdentityServer(audience="demo-login")
    server.start()
    yield server
    server.stop()


@pytest.fixture
def webhook(identity: IdentityServer, tmp_path: Path) -> Webhook:
    machine = {"tenant": "acme", "issuer": identity.issuer, "client_id": "demo"}
    (tmp_path / "api").mkdir()
    (tmp_path / "machine.json").write_text(json.dumps(machine))
    (tmp_path / "api" / "authentication.yaml").write_text(json.dumps(authentication(machine)))
    review = logins(tmp_path)
    assert review is not None
    return review


def test_people_of_the_tenant_are_known_by_their_names(identity, webhook):
    person = reviewed(webhook, identity.token("acme", subject="ann"))
    assert person == Person("oidc:ann", frozenset({"system:authenticated"}))


def test_others_are_nobody(identity, webhook):
    assert reviewed(webhook, identity.token("globex")) is None
    assert reviewed(webhook, identity.token("acme", ttl=-1)) is None
    assert reviewed(webhook, "e30.e30.c2ln") is None


def test_a_machine_without_a_configuration_knows_nobody(tmp_path):
    assert logins(tmp_path) is None
