"""A node watches what its cloud announces, and tells Stockyard of interruptions and maintenance."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from stockyard.domain.models.base import read
from stockyard.domain.models.clusters.observations import Interruption
from stockyard.machines import node as node_boot
from tests.unit.machines.first_boot import CLAIM, KEYS, NODE_VALUES, refusal


def watched(node: Any, monkeypatch: pytest.MonkeyPatch, script: list[dict[str, str] | int]) -> list[dict[str, Any]]:
    """Posts of the machine while its metadata is as ``script`` says, look by look; a number is the status of the next
    post."""
    posts: list[dict[str, Any]] = []
    current: dict[str, str] = {}
    statuses: list[int] = []

    def pause(seconds: float) -> None:
        assert seconds == (5.0 if FACTS["instance-life-cycle"] == "spot" else 60.0)
        step = script.pop(0) if script else None
        if step is None:
            raise TimeoutError
        if isinstance(step, int):
            statuses.append(step)
        else:
            current.update(step)

    def fetch(method: str, url: str, headers: Any = None, body: bytes | None = None) -> str:
        path = urlsplit(url).path
        if path == "/latest/api/token":
            return "imds-token"
        if method == "POST":
            if statuses:
                raise refusal(statuses.pop(0), {})
            posts.append({"path": path, **json.loads(body or b"")})
            return "{}"
        name = path.removeprefix("/latest/meta-data/")
        if name not in {**FACTS, **current}:
            raise refusal(404, {})
        return {**FACTS, **current}[name]

    monkeypatch.setattr(node.machine, "fetch", fetch)
    config = {"api_url": "https://api.example.test", "cluster_id": NODE_VALUES["cluster_id"]}
    node.watch(config, pause)
    return posts


FACTS = {
    "instance-life-cycle": "spot",
    "tags/instance/stockyard:resource": CLAIM,
    "placement/region": "us-east-1",
    "iam/security-credentials/": "node-role",
    "iam/security-credentials/node-role": json.dumps(KEYS),
}
ACTION = {"spot/instance-action": '{"action": "terminate", "time": "2026-11-23T12:00:00Z"}'}
REBALANCE = {"events/recommendations/rebalance": '{"noticeTime": "2026-11-23T11:50:00Z"}'}


def test_a_machine_tells_what_its_cloud_announces_until_it_was_heard(
    node: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    posts = watched(node, monkeypatch, [{}, REBALANCE, {}, 503, ACTION, {}, {}])
    assert [(post["kind"], post["time"]) for post in posts] == [
        ("rebalance", "2026-11-23T11:50:00Z"),
        ("interruption", "2026-11-23T12:00:00Z"),
    ]
    assert {post["path"] for post in posts} == {f"/v1/node-claims/{CLAIM}/interruptions"}
    for post in posts:
        body = read(Interruption, {name: value for name, value in post.items() if name != "path"})
        assert body.time in ("2026-11-23T11:50:00.000Z", "2026-11-23T12:00:00.000Z")


def test_a_machine_whose_metadata_has_no_tags_asks_its_cloud_for_them(
    node: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries: list[Any] = []
    described = f"<tagSet><item><key>{node.CLAIM_TAG}</key>\n <value>{CLAIM}</value></item></tagSet>"
    facts = {**FACTS, "instance-id": "i-0123"}
    del facts["tags/instance/stockyard:resource"]

    def fetch(method: str, url: str, headers: Any = None, body: bytes | None = None) -> str:
        parts = urlsplit(url)
        if parts.hostname == "ec2.us-east-1.amazonaws.com":
            queries.append(dict(parse_qsl(parts.query)))
            return described
        name = parts.path.removeprefix("/latest/meta-data/")
        if parts.path != "/latest/api/token" and name not in facts:
            raise refusal(404, {})
        return facts.get(name, "imds-token")

    monkeypatch.setattr(node.machine, "fetch", fetch)
    assert node.claim() == CLAIM
    assert (queries[0]["Action"], queries[0]["InstanceId.1"]) == ("DescribeInstances", "i-0123")
    assert queries[0]["X-Amz-Credential"].endswith("/us-east-1/ec2/aws4_request")
    described = "<tagSet/>"
    with pytest.raises(KeyError):
        node.claim()


def test_every_machine_tells_of_scheduled_maintenance_once(node: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on demand asks for nothing else, and is done then."""
    monkeypatch.setitem(FACTS, "instance-life-cycle", "on-demand")
    over = event("20 Nov 2026 09:00:43 GMT", "completed")
    soon, late = event("30 Nov 2026 09:00:43 GMT"), event("1 Dec 2026 00:00:00 GMT")
    script: list[Any] = [ACTION, scheduled(), scheduled(over), 503, scheduled(over, late, soon), {}]
    (post,) = watched(node, monkeypatch, script)
    assert (post["kind"], post["time"]) == ("maintenance", "2026-11-30T09:00:43Z")
    assert read(Interruption, {name: value for name, value in post.items() if name != "path"}).kind == "maintenance"


def test_a_spot_machine_tells_of_its_end_after_all_else(node: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    posts = watched(node, monkeypatch, [scheduled(event("30 Nov 2026 09:00:43 GMT")), REBALANCE, {}, ACTION, {}])
    assert [post["kind"] for post in posts] == ["maintenance", "rebalance", "interruption"]


def test_a_spot_machine_labels_its_own_node_once_it_has_joined_and_when_it_ends(
    node: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster that takes no label holds nothing up; Stockyard hears first."""
    values: list[str] = []
    answers = [False, True, False, False]

    def label(value: str) -> bool:
        values.append(value)
        return answers.pop(0)

    monkeypatch.setattr(node.stockyard_near, "label", label)
    (post,) = watched(node, monkeypatch, [{}, {}, {}, ACTION])
    assert post["kind"] == "interruption"
    assert values == ["watched", "watched", "announced", "announced"]
    monkeypatch.setitem(FACTS, "instance-life-cycle", "on-demand")
    watched(node, monkeypatch, [scheduled(event("30 Nov 2026 09:00:43 GMT"))])
    assert len(values) == 4, "others do not"


def test_a_machine_of_no_cloud_does_not_watch(node: Any) -> None:
    node.watch({"token": "t", "claim_id": CLAIM})


def event(begin: str, state: str = "active") -> dict[str, str]:
    return {"NotBefore": begin, "NotAfter": "", "Code": "system-reboot", "EventId": "e-1", "State": state}


def scheduled(*events: dict[str, str]) -> dict[str, str]:
    return {"events/maintenance/scheduled": json.dumps(events)}


def test_the_watch_begins_with_the_first_boot(node_files: dict[str, Any]) -> None:
    unit = node_files[f"/etc/systemd/system/{node_boot.WATCH_UNIT}"]["content"]
    assert f"ExecStart=/usr/bin/python3 {node_boot.SCRIPT_PATH} watch\n" in unit
    start = node_files[node_boot.START_PATH]["content"]
    assert start.index(f"enable --now --no-block {node_boot.WATCH_UNIT}") < start.index("begin packages")
