"""A node's hosts file has the control plane's own address while an API server of the cluster answers there."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from local.authority import Authority
from stockyard.machines import node as node_boot

HOST = "127.0.0.1"
"""A name that the servers' certificates have."""
SYSTEM = "127.0.0.1 localhost\n::1 ip6-localhost\n"
VALUES = {"api_url": "https://api.example.test", "cluster_id": "clu_1", "kubernetes_version": "1.34"}


@pytest.fixture
def near(tmp_path: Path) -> Any:
    """The program as it was extracted from the document, with files of its own."""
    document = yaml.safe_load(gzip.decompress(node_boot.first_boot(**VALUES).cloud_config()))
    source = next(file["content"] for file in document["write_files"] if file["path"] == node_boot.NEAR_PATH)
    module: Any = ModuleType("near")
    exec(compile(source, "near", "exec"), module.__dict__)  # noqa: S102 - our own program
    module.HOSTS, module.AUTHORITY = str(tmp_path / "hosts"), str(tmp_path / "ca.crt")
    module.ENDPOINT, module.RESTART = str(tmp_path / "endpoint.json"), f"echo again >> {tmp_path}/restarts"
    (tmp_path / "hosts").write_text(SYSTEM)
    return module


@pytest.fixture
def authority(near: Any, tmp_path: Path) -> Authority:
    """The cluster's authority, as the node has it after it has joined."""
    return Authority(tmp_path)


class Server:
    """Does TLS handshakes on loopback with a certificate of the authority."""

    def __init__(self, authority: Authority) -> None:
        self._context = authority.serving("server")
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                plain, _ = self._socket.accept()
            except OSError:
                return
            try:
                self._context.wrap_socket(plain, server_side=True).close()
            except OSError:
                plain.close()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@pytest.fixture
def server(authority: Authority) -> Iterator[Server]:
    server = Server(authority)
    yield server
    server.close()


def test_a_machine_that_has_not_joined_labels_no_node(near: Any, tmp_path: Path) -> None:
    assert not near.label("watched")
    (tmp_path / "endpoint.json").write_text(json.dumps({"host": HOST, "port": 1, "addresses": []}))
    assert not near.label("watched")


def endpoint(port: int, *addresses: str) -> dict[str, Any]:
    return {"host": HOST, "port": port, "addresses": list(addresses)}


def hosts(near: Any) -> str:
    return Path(near.HOSTS).read_text()


def test_name_leads_to_the_address_while_the_cluster_answers_there(near: Any, server: Server) -> None:
    document = endpoint(server.port, "127.0.0.1")
    assert near.update(document)
    assert hosts(near) == f"{SYSTEM}127.0.0.1 {HOST} {near.MARK}\n"
    assert not near.update(document), "once is enough"
    silent = endpoint(1, "127.0.0.1")
    assert near.update(silent)
    assert hosts(near) == SYSTEM
    assert not near.update(silent)


@pytest.mark.parametrize("own_authority", [True, False])
def test_whoever_else_answers_there_is_not_believed(
    near: Any, authority: Authority, tmp_path: Path, own_authority: bool
) -> None:
    """A machine of another network with the same address: of another name, or of another authority."""
    stranger = Server(authority if own_authority else Authority(tmp_path / "other"))
    document = endpoint(stranger.port, "127.0.0.1")
    assert not near.update({**document, "host": "other.example.test"} if own_authority else document)
    assert hosts(near) == SYSTEM
    stranger.close()


def test_machine_that_has_not_joined_knows_no_authority(near: Any) -> None:
    assert not near.update(endpoint(1, "127.0.0.1", "no address"))
    assert hosts(near) == SYSTEM


def test_change_starts_again_what_has_a_copy_of_the_file(near: Any, server: Server, tmp_path: Path) -> None:
    Path(near.ENDPOINT).write_text(json.dumps(endpoint(server.port, "127.0.0.1")))
    near.main()
    near.main()
    assert (tmp_path / "restarts").read_text() == "again\n"
    assert oct(Path(near.HOSTS).stat().st_mode)[-3:] == "644"


def test_answer_of_an_api_without_addresses_changes_nothing(near: Any) -> None:
    assert not near.update(endpoint(6443))


def test_members_come_and_go_and_the_cluster_says_which_there_are(near: Any, server: Server, tmp_path: Path) -> None:
    Path(near.ENDPOINT).write_text(json.dumps(endpoint(server.port, "127.0.0.2")))
    subsets = [{"addresses": [{"ip": "127.0.0.1"}, {"ip": "127.0.0.9"}], "notReadyAddresses": [{"ip": "127.0.0.8"}]}]
    near.members = lambda _: near.addresses({"subsets": subsets})
    near.main()
    assert json.loads(Path(near.ENDPOINT).read_text())["addresses"] == ["127.0.0.1", "127.0.0.9"]
    assert hosts(near) == f"{SYSTEM}127.0.0.1 {HOST} {near.MARK}\n", "only who answers is named"


@pytest.mark.parametrize("subsets", [None, [], [{"notReadyAddresses": [{"ip": "127.0.0.8"}]}]])
def test_a_cluster_that_names_no_member_changes_nothing(near: Any, subsets: Any) -> None:
    document = endpoint(6443, "127.0.0.2")
    near.members = lambda _: near.addresses({"subsets": subsets})
    near.refresh(document)
    assert document == endpoint(6443, "127.0.0.2")
    assert not Path(near.ENDPOINT).exists()


def test_a_node_without_a_certificate_knows_what_it_was_told(near: Any, server: Server) -> None:
    document = endpoint(server.port, "127.0.0.1")
    near.refresh(document)
    assert document == endpoint(server.port, "127.0.0.1")
