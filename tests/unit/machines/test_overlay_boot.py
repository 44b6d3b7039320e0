"""First boot of machines in a cluster with an overlay: what they are given, what they ask, and what kubeadm is told."""

from __future__ import annotations

import base64
import json
import os
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from stockyard.machines import control_plane
from stockyard.machines import node as node_boot
from stockyard.machines.cloud_config import OVERLAY_UNIT, program
from stockyard.machines.control_plane import OVERLAY_PROGRAMS, ControlPlaneMachine, given_programs
from stockyard.machines.on_machine import stockyard_machine as machine
from stockyard.machines.on_machine import stockyard_machine_first as first
from stockyard.machines.on_machine import stockyard_overlay as overlay
from stockyard.machines.on_machine import stockyard_overlay_peers as peers
from tests.unit.machines import first_boot
from tests.unit.machines.first_boot import NODE_VALUES, VALUES

PLAIN = {**VALUES, "volume_tags": None}
EC2_LIMIT = 16 * 1024
TOKEN = "t" * 64


def _key(number: int) -> str:
    return base64.b64encode(number.to_bytes(32, "big")).decode()


def test_machines_of_an_overlay_have_two_files_more_and_user_data_stays_small() -> None:
    kinds: tuple[dict[str, Any], ...] = (
        {}, {"joins": True}, {"token": TOKEN}, {"joins": True, "token": TOKEN, "claim_id": "ncl_1"},
    )  # fmt: skip
    planes = (
        (ControlPlaneMachine(**PLAIN, **kind, overlay=True), ControlPlaneMachine(**PLAIN, **kind)) for kind in kinds
    )
    boots = [(with_one.first_boot(), without.first_boot()) for with_one, without in planes]
    boots.append((node_boot.first_boot(**NODE_VALUES, overlay=True), node_boot.first_boot(**NODE_VALUES)))
    for boot, without in boots:
        new = boot.files.keys() - without.files.keys()
        assert new == {"/usr/local/lib/stockyard/overlay.sh", f"/etc/systemd/system/{OVERLAY_UNIT}"}
        assert len(boot.cloud_config()) <= control_plane.LIMIT < EC2_LIMIT
        assert boot.script()
    # What a template hands to its cloud as text.
    script = node_boot.first_boot(**NODE_VALUES, claim_id="ncl_1", token=TOKEN, overlay=True).script()
    assert len(script.encode()) < EC2_LIMIT


def test_scripts_are_sound_and_the_program_is_given_whole(tmp_path: Path) -> None:
    first_boot.check_script(program("overlay.sh").text, tmp_path)
    programs = given_programs(OVERLAY_PROGRAMS)
    for name, text in programs.items():
        compile(text, name, "exec")
    assert f"/etc/stockyard/{next(iter(programs))}" in node_boot.first_boot(**NODE_VALUES, overlay=True).files[
        f"/etc/systemd/system/{OVERLAY_UNIT}"
    ].text  # fmt: skip


def test_key_is_made_once_and_never_told(tmp_path: Path) -> None:
    text = program("overlay.sh").text.replace("/etc/stockyard", str(tmp_path))
    tools = {
        "wg": 'case "$1" in genkey) head -c 32 /dev/urandom | base64;; pubkey) cat >/dev/null; echo public;; esac',
        "modprobe": "exit 0",
        "ip": "echo '192.0.2.1 via 10.0.0.1 dev eth0 src 10.0.0.7 uid 0'",
    }
    for name, body in tools.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    script = tmp_path / "overlay.sh"
    script.write_text(text)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    keys = set()
    for _ in range(2):
        done = subprocess.run(["bash", script], env=environment, capture_output=True, text=True, check=True)
        secret = (tmp_path / "overlay.key").read_text()
        keys.add(secret)
        assert (tmp_path / "overlay.key").stat().st_mode & 0o777 == 0o600
        assert secret.strip() not in done.stdout + done.stderr
    assert len(keys) == 1
    request = json.loads((tmp_path / "overlay.request").read_text())
    assert request == {"overlay_key": "public", "overlay_local": "10.0.0.7"}


def test_a_machine_without_the_script_asks_as_ever_and_enters_no_overlay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "STATE", str(tmp_path))
    assert machine.overlay_request() == {}
    for answer in ({}, {"overlay": None}):
        assert machine.enter_overlay(dict(answer)) == ""
    assert list(tmp_path.iterdir()) == []


def test_an_answer_is_kept_without_its_programs_before_the_program_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "STATE", str(tmp_path))
    configuration = {"address": "100.64.0.9", "range": "100.64.0.0/16", "hub": False, "peers": []}
    written = tmp_path / "ran"
    programs = {"stockyard_overlay.py": f"import sys\nopen({str(written)!r}, 'w').write(' '.join(sys.argv[1:]))\n"}
    answer: dict[str, Any] = {"overlay": {**configuration, "programs": programs}, "token": "t"}
    assert machine.enter_overlay(answer) == "100.64.0.9"
    assert (written.read_text(), answer) == ("enter", {"token": "t"})
    assert json.loads((tmp_path / "overlay.json").read_text()) == configuration


def test_kubeadm_begins_at_the_address_of_the_overlay() -> None:
    config = {"client_id": "c", "kubernetes_version": "1.36.3", "pod_cidr": "10.244.0.0/16"}
    client = {"endpoint": "https://nlb.example.test:6443"}
    init, *_ = first.kubeadm(config, client, "", "100.64.0.1")
    assert init["localAPIEndpoint"] == {"advertiseAddress": "100.64.0.1"}
    assert {"name": "node-ip", "value": "100.64.0.1"} in init["nodeRegistration"]["kubeletExtraArgs"]
    plain, *_ = first.kubeadm(config, client, "")
    assert "localAPIEndpoint" not in plain


# --- the program, without tunnels -------------------------------------------------------------------------------------


class Silent(overlay.Overlay):
    """An overlay whose interface and probes go nowhere."""

    def apply(self) -> None:
        self.written = self.allowed()

    def send(self, peer: Any, **_: Any) -> None:
        self.__dict__.setdefault("sent", []).append(peer.address)


def _overlay(*, hub: bool = False) -> Silent:
    hubs = [{"address": f"100.64.0.{n}", "key": _key(n), "hub": True, "endpoints": [f"192.0.2.{n}:1"]} for n in (1, 2)]
    nodes = [{"address": f"100.64.0.{n}", "key": _key(n)} for n in (3, 4)]
    own = "100.64.0.1" if hub else "100.64.0.9"
    return Silent({"address": own, "range": "100.64.0.0/16", "hub": hub, "peers": [*hubs, *nodes]})


def test_packets_go_through_one_home_until_a_path_is_heard_both_ways() -> None:
    own = _overlay()
    assert all(
        ranges == (f"100.64.128.{n}/32",) for n, ranges in zip((1, 2, 3, 4), own.allowed().values(), strict=True)
    )
    own.hear(own.peers["100.64.0.2"], {"hears": True})
    assert own.home == "100.64.0.2"
    own.hear(own.peers["100.64.0.1"], {"hears": True})
    assert own.allowed()[_key(2)] == ("100.64.0.0/17", "100.64.0.2/32", "100.64.128.2/32")
    assert own.allowed()[_key(1)] == ("100.64.128.1/32",), "another hub is reached through the home"
    own.hear(own.peers["100.64.0.3"], {"hears": False})
    assert own.allowed()[_key(3)] == ("100.64.128.3/32",), "it does not hear us"
    own.hear(own.peers["100.64.0.3"], {"hears": True})
    assert own.allowed()[_key(3)] == ("100.64.0.3/32", "100.64.128.3/32")
    own.hear(own.peers["100.64.0.3"], {"hears": False})
    assert own.allowed()[_key(3)] == ("100.64.128.3/32",)


def test_a_hub_passes_on_to_the_hub_whose_home_a_machine_has() -> None:
    hub = _overlay(hub=True)
    node, other = hub.peers["100.64.0.3"], hub.peers["100.64.0.2"]
    assert "100.64.0.3/32" in hub.allowed()[_key(3)]
    hub.hear(other, {"hears": True, "homed": ["100.64.0.3"]})
    assert "100.64.0.3/32" in hub.allowed()[_key(2)]
    hub.hear(node, {"hears": True, "home": "100.64.0.1"})
    assert "100.64.0.3/32" in hub.allowed()[_key(3)], "what it says itself is newer"
    assert hub.message(other)["homed"] == ["100.64.0.3"]


def test_endpoints_are_believed_of_the_home_alone_and_lists_leave_nobody_behind() -> None:
    own = _overlay()
    rows = {"page": [["100.64.0.3", "198.51.100.7:4000", "10.0.0.3:51820"]], "next": 0, "seen": "v"}
    for liar in ("100.64.0.4", "100.64.0.2"):
        own.hear(own.peers["100.64.0.1"], {"hears": True})
        own.hear(own.peers[liar], {"hears": True, **rows})
        assert own.peers["100.64.0.3"].endpoints == []
    own.hear(own.peers["100.64.0.1"], {"hears": True, "you": "203.0.113.1:9", **rows})
    assert own.peers["100.64.0.3"].endpoints == ["198.51.100.7:4000"]
    own.hear(own.peers["100.64.0.1"], {"hears": True, "you": "198.51.100.7:9", **rows})
    assert own.peers["100.64.0.3"].endpoints == ["10.0.0.3:51820", "198.51.100.7:4000"], "behind the same NAT"
    own.take([{"address": "100.64.0.4", "key": _key(4)}])
    assert (list(own.peers), own.home, list(own.allowed())) == (["100.64.0.4"], "", [_key(4)])
    with pytest.raises(ValueError, match=r"100\.64\.128\.1"):
        own.take([{"address": "100.64.128.1", "key": _key(4)}])


@pytest.mark.parametrize(
    "message",
    [[], {"hears": 1, "home": {}, "local": 5}, {"hears": True, "cursor": "x"}, {"hears": True, "homed": 3}, None],
)
def test_what_is_no_probe_ends_nothing(message: Any) -> None:
    hub = _overlay(hub=True)
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as far,
    ):
        here.bind(("127.0.0.1", 0))
        far.bind(("127.0.0.1", 0))
        hub.socket, hub.by_probe = here, {"127.0.0.1": hub.peers["100.64.0.3"]}
        far.sendto(json.dumps(message).encode(), here.getsockname())
        hub.receive()
        far.sendto(b"{", here.getsockname())
        hub.receive()
    assert peers.address_of("10.0.0.1:51820") == "10.0.0.1:51820"
    for endpoint in ("name.test:1", "10.0.0.1:0", "10.0.0.1:70000", "10.0.0.1", None, {}):
        assert peers.address_of(endpoint) == ""
