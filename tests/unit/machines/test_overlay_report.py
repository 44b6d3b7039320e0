"""Report of a machine of an overlay on its own Node: what it says, and how seldom."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from stockyard.domain.clusters.overlay_paths import read
from stockyard.machines.on_machine import stockyard_overlay as overlay

program: Any = overlay
peers, report = program.peers, program.stockyard_overlay_report

KEY = "k" * 43 + "="


class Moments:
    """A clock that stands until it is set."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def time(self) -> float:
        return self.now + 1_700_000_000

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def moments(monkeypatch: pytest.MonkeyPatch) -> Moments:
    moments = Moments()
    for module in (report, overlay, peers):
        monkeypatch.setattr(module, "time", moments)
    return moments


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    texts: list[dict[str, Any]] = []
    monkeypatch.setattr(report, "write", lambda text: texts.append(json.loads(text)))
    monkeypatch.setattr(peers, "run", lambda *_: f"{KEY}1\t1700000000\nother\t0\n")
    return texts


def member(*, hub: bool) -> overlay.Overlay:
    rows = [{"address": "100.64.0.1", "key": f"{KEY}1", "hub": True}, {"address": "100.64.0.2", "key": f"{KEY}2"}]
    own = "100.64.0.3" if hub else "100.64.0.9"
    return overlay.Overlay({"address": own, "range": "100.64.0.0/16", "hub": hub, "peers": rows})


def hear(own: overlay.Overlay, address: str, moment: float) -> None:
    peer = own.peers[address]
    peer.heard, peer.hears, peer.direct = moment, True, True


def test_a_machine_says_its_hub_and_whom_it_reaches_through_it(moments: Moments, written: list[dict[str, Any]]) -> None:
    own, reporter = member(hub=False), report.Report()
    reporter.tell(own)
    assert not written, "a program that begins has heard nobody"
    moments.now += report.PAUSE
    hear(own, "100.64.0.1", moments.now)
    own.home = "100.64.0.1"
    reporter.tell(own)
    since = report.moment(moments.time())
    assert written == [
        {"direct": 1, "home": "100.64.0.1", "since": since, "relayed": ["100.64.0.2"], "count": 1,
         "handshake": "2023-11-14T22:13:20.000Z"}
    ]  # fmt: skip
    assert read(json.dumps(written[0])) == written[0]
    for _ in range(200):
        moments.now += peers.TICK
        hear(own, "100.64.0.1", moments.now)
        reporter.tell(own)
    assert len(written) == 1, "what stays is not said again"
    for _ in range(200):
        moments.now += peers.TICK
        hear(own, "100.64.0.1", moments.now)
        own.peers["100.64.0.2"].direct = not own.peers["100.64.0.2"].direct
        reporter.tell(own)
    assert 1 < len(written) <= 1 + 200 * peers.TICK / report.PAUSE, "what changes all the time is said once a minute"


def test_a_hub_says_whom_it_does_not_hear_and_since_when(moments: Moments, written: list[dict[str, Any]]) -> None:
    own, reporter = member(hub=True), report.Report()
    last = moments.time()
    hear(own, "100.64.0.2", moments.now)
    own.peers["100.64.0.2"].direct = False
    for _ in range(40):
        moments.now += peers.TICK
        hear(own, "100.64.0.1", moments.now)
        reporter.tell(own)
    assert written[-1]["down"] == {"100.64.0.2": report.moment(last)}
    hear(own, "100.64.0.2", moments.now)
    moments.now += report.PAUSE
    hear(own, "100.64.0.2", moments.now)
    hear(own, "100.64.0.1", moments.now)
    reporter.tell(own)
    assert written[-1] == {"direct": 2, "down": {}, "handshake": "2023-11-14T22:13:20.000Z"}


def test_a_cluster_that_refuses_is_asked_once_a_minute(
    moments: Moments, written: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[str] = []

    def refuse(text: str) -> None:
        tries.append(text)
        raise OSError("403")

    monkeypatch.setattr(report, "write", refuse)
    own, reporter = member(hub=False), report.Report()
    for _ in range(int(report.PAUSE / peers.TICK) * 10):
        moments.now += peers.TICK
        reporter.tell(own)
    assert 9 <= len(tries) <= 11


def test_the_node_is_that_of_the_kubelets_certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "ip-10-0-0-1.ec2.internal", "n" * 50):
        path = tmp_path / "kubelet.pem"
        command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -keyout"
        subject = ["-subj", f"/O=system:nodes/CN=system:node:{name}"]
        subprocess.run([*command.split(), tmp_path / "k", "-out", path, *subject], check=True, capture_output=True)
        monkeypatch.setattr(peers, "KUBELET", str(path))
        assert report.own_node() == name
