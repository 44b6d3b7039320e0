"""The connection with a head node over real TLS: each certificate that is wrong, and each server that hangs, has an
error of its own within twenty seconds, and nothing is sent to a head node that is not the pinned one."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from local.bcm.head_node import HeadNode
from local.bcm.inventory import device
from local.bcm.server import HeadNodeServer
from stockyard.domain.records import CloudAccount
from stockyard.domain.values.ids import account_secret
from stockyard.errors import (
    CredentialsRevoked,
    VendorError,
    VendorRefused,
    VendorTimeout,
    VendorUnavailable,
)
from stockyard.providers.addresses import Guard
from stockyard.providers.clouds.bcm import client
from stockyard.providers.clouds.bcm.access import Access
from stockyard.providers.clouds.bcm.cloud import HeadNodes
from stockyard.providers.clouds.bcm.trust import Trust
from tests.harness.bcm.certificates import Maker, Pair
from tests.harness.bcm.yard import NUMBER, TENANT, WORD, bcm_account
from tests.harness.worlds.memory import MemorySecrets

MOST_SECONDS = 20
AUTHORITY, STRANGER = Maker(), Maker("Somebody")
ADMIN = AUTHORITY.client()


class Room:
    """A head node on a port, and who calls it."""

    def __init__(self, folder: Path, server: Pair) -> None:
        self.head_node = HeadNode(lambda: datetime.now(UTC))
        self.head_node.add([device("node001", notes=WORD)])
        authority, _ = AUTHORITY.pair.files(folder, "authority")
        self.server = HeadNodeServer(self.head_node, *server.files(folder, "server"), authority)

    def account(self, pair: Pair = ADMIN, **attributes: Any) -> CloudAccount:
        """The account with that client certificate, known by its authority where nothing else is said."""
        pin = {} if "fingerprint" in attributes else {"certificate_authority": AUTHORITY.pair.certificate_b64}
        account = bcm_account(endpoint=self.server.url, client_certificate=pair.certificate_b64)
        usual = {name: value for name, value in account.attributes.items() if name != "fingerprint"}
        return replace(account, attributes={**usual, **pin, **attributes})


@contextmanager
def room(folder: Path, server: Pair | None = None) -> Iterator[Room]:
    new_room = Room(folder, server or AUTHORITY.server())
    try:
        yield new_room
    finally:
        new_room.server.close()


def access(account: CloudAccount, pair: Pair = ADMIN) -> Access:
    secrets = MemorySecrets()
    secrets.put(account_secret(TENANT, NUMBER, "client_key"), pair.key_b64)
    host = str(account.attributes["endpoint"]).removeprefix("https://")

    return Access(lambda: secrets, Guard(stand_ins=frozenset({host})), _no_site)


def _no_site(tenant: str, site: str) -> Any:
    raise AssertionError((tenant, site))


def error_of(account: CloudAccount, pair: Pair = ADMIN) -> VendorError:
    """The error of the first call, which comes in time."""
    began = time.monotonic()
    with closing(access(account, pair)) as way, pytest.raises(VendorError) as caught:
        way.client(TENANT, account).devices()
    assert time.monotonic() - began < MOST_SECONDS
    assert pair.key_b64[:40] not in str(caught.value)
    return caught.value


def test_either_pin_leads_to_the_head_node(tmp_path: Path) -> None:
    server = AUTHORITY.server()
    with room(tmp_path, server) as here:
        for account in (here.account(), here.account(fingerprint=server.fingerprint)):
            with closing(access(account)) as way:
                assert [each.hostname for each in way.client(TENANT, account).devices()] == ["node001"]
                assert HeadNodes(way).verify(account, TENANT).works


@pytest.mark.parametrize(
    ("pair", "text"),
    [
        (STRANGER.client(), "not of an authority that the head node knows"),
        (AUTHORITY.client(life=timedelta(days=-1)), "the client certificate has expired"),
        (AUTHORITY.client("somebody"), "does not accept the client certificate"),
    ],
    ids=["of another authority", "expired", "unknown"],
)
def test_a_client_certificate_that_is_not_taken(tmp_path: Path, pair: Pair, text: str) -> None:
    with room(tmp_path) as here:
        error = error_of(here.account(pair), pair)
        assert isinstance(error, CredentialsRevoked), error
        assert text in error.detail
        assert here.head_node.calls == []
        account = here.account(pair)
        with closing(access(account, pair)) as way:
            message = HeadNodes(way).verify(account, TENANT).message
        assert ("The client certificate ended at" if "expired" in text else text) in message


def test_without_a_client_certificate_the_answer_is_401(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trust, "_load", lambda *_: None)
    with room(tmp_path) as here:
        error = error_of(here.account())
        assert (type(error), error.code) == (CredentialsRevoked, "401")
        assert "was shown none" in error.detail


def test_a_key_that_is_of_another_certificate(tmp_path: Path) -> None:
    with room(tmp_path) as here:
        error = error_of(here.account(), AUTHORITY.client())
        assert (type(error), error.code) == (VendorRefused, "ClientCertificate")


@pytest.mark.parametrize(
    ("server", "attributes", "text"),
    [
        (STRANGER.server(), {}, "not the one that the account names"),
        (AUTHORITY.server("127.0.0.2"), {}, "not the one that the account names"),
        (AUTHORITY.server(life=timedelta(days=-1)), {}, "the head node's own certificate has expired"),
        (AUTHORITY.server(), {"fingerprint": STRANGER.server().fingerprint}, "not the one that the account names"),
    ],
    ids=["of another authority", "of another host", "expired", "another fingerprint"],
)
def test_nothing_is_sent_to_a_head_node_that_is_not_the_pinned_one(
    tmp_path: Path, server: Pair, attributes: dict[str, str], text: str
) -> None:
    with room(tmp_path, server) as here:
        error = error_of(here.account(**attributes))
        assert (type(error), error.code) == (VendorRefused, "CertificateVerification")
        assert text in error.detail
        assert here.head_node.calls == []


@pytest.mark.parametrize("greets", [False, True])
def test_a_connection_that_hangs_ends_in_time(tmp_path: Path, greets: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before its handshake, and with an answer that never comes."""
    monkeypatch.setattr(client, "READ_SECONDS", 2.0)
    if greets:
        with room(tmp_path) as here:
            monkeypatch.setattr(here.head_node, "answer", lambda *_: (time.sleep(4), (200, "", b""))[1])
            error = error_of(here.account())
        assert isinstance(error, VendorTimeout)
        return
    with socket.create_server(("127.0.0.1", 0)) as listener:  # it takes connections, and nobody answers
        pins = {"certificate_authority": AUTHORITY.pair.certificate_b64, "fingerprint": None}
        endpoint = f"https://127.0.0.1:{listener.getsockname()[1]}"
        account = bcm_account(endpoint=endpoint, client_certificate=ADMIN.certificate_b64, **pins)
        error = error_of(account)
        assert (type(error), "no answer in time" in error.detail) == (VendorTimeout, True)


def test_a_head_node_that_is_not_there(tmp_path: Path) -> None:
    with room(tmp_path) as here:
        account = here.account()
    assert isinstance(error_of(account), VendorUnavailable)
    with closing(access(account)) as way, pytest.raises(VendorUnavailable):
        HeadNodes(way).verify(account, TENANT)


def test_the_limits_are_short_enough_for_a_name_with_three_addresses() -> None:
    assert 3 * 2 * client.CONNECT_SECONDS < MOST_SECONDS
    assert max(client.READ_SECONDS, client.MOST_SECONDS) < MOST_SECONDS


def test_addresses_that_nobody_outside_may_choose_are_not_called() -> None:
    account = bcm_account(certificate_authority=AUTHORITY.pair.certificate_b64, fingerprint=None)
    secrets = MemorySecrets()
    secrets.put(account_secret(TENANT, NUMBER, "client_key"), ADMIN.key_b64)
    for address, code in (("127.0.0.1", "ForbiddenAddress"), ("10.0.0.4", "PrivateAddress")):
        guard = Guard(resolve=lambda _host, _port, address=address: (address,))
        signed = replace(account, attributes={**account.attributes, "client_certificate": ADMIN.certificate_b64})
        with closing(Access(lambda: secrets, guard, _no_site)) as way, pytest.raises(VendorRefused) as caught:
            way.client(TENANT, signed).devices()
        assert caught.value.code == code
