"""The benchmark of a fleet: a small one lives for some minutes, and what it prints adds up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.fleet import Fleet, played
from benchmarks.virtual_fleet.limits import LIMITS, Bucket, Limit, limit_of
from benchmarks.virtual_fleet.load import Rates
from benchmarks.virtual_fleet.posts import PLAYED, Posts
from benchmarks.virtual_fleet.shortcuts import Shortcuts
from benchmarks.virtual_fleet.tally import spread
from stockyard.adapters.dynamodb import codec
from stockyard.domain.models.clusters.observations import Observation
from stockyard.domain.records import Name
from stockyard.edge import serve
from stockyard.edge.reading import Content
from stockyard.operations.sweep import run

BUSY = Rates(pods=60.0, claims=20.0, spot_losses=20.0, looks=40.0)


def test_a_small_fleet_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "FEW_TENANTS", 0)  # so that the sweep hands its turns out
    lines: list[dict[str, object]] = []
    total = played(Fleet(1, 4, 1), BUSY, 1, 0.12, 60.0, lines.append)
    assert [line["hours"] for line in lines] == [0.12]
    assert total["faults"] == {}
    # A machine that asks how to join before the agent's next post has made its token asks again.
    assert set(total["refused"]) <= {"POST /v1/node-claims/{id}/join 409"}
    assert total["bind"]["n"] > 0
    assert total["bind"]["p95"] < 2
    for name in ("autoscaler", "disruptor", "machines", "node_phases", "reaper", "relay", "scheduler"):
        assert total["invocations"][name] > 0
    # Of two runs each has handed out the tenant's turn, and that its account.
    assert total["invocations"]["reaper"] >= 3
    calls = total["calls"]
    assert min(calls["ec2 CreateFleet"], calls["ec2 TerminateInstances"], calls["transitions"]) > 0
    assert sum(total["units_by_function"].values()) == pytest.approx(sum(total["units"].values()), rel=0.01)
    assert total["usd_hour"] == pytest.approx(sum(total["usd"].values()) / 0.12, rel=0.01)


def test_a_bucket_is_refilled_while_time_passes() -> None:
    bucket = Bucket(Limit(10, 2, ""))
    for _ in range(6):
        bucket.take(0.0)
    bucket.take(100.0)
    assert (bucket.used, bucket.tokens) == (0.6, 9)


def test_the_longest_name_of_a_limit_counts() -> None:
    assert limit_of("ec2 DescribeInstances") == ("ec2 Describe", LIMITS["ec2 Describe"])
    assert limit_of("ec2 RunInstances") == ("ec2", LIMITS["ec2"])
    assert limit_of("iam ListRoles") is None


def test_a_spread_has_the_nearest_ranks() -> None:
    assert spread([3.0, 1.0, 2.0]) == {"n": 3, "p50": 2.0, "p95": 3.0, "most": 3.0}
    assert spread([]) == {"n": 0}


def test_a_record_is_decoded_once_and_charged_each_time() -> None:
    charged: list[float] = []
    item = codec.to_item("acme", Name("node-claim/web", "one"))
    present = [item]
    shortcuts = Shortcuts(charged.append, lambda each: any(each is there for there in present))
    with shortcuts.active():
        first = codec.from_item(Name, item)
        assert codec.from_item(Name, item) is first
        assert len(charged) == 1
        assert charged[0] > 0
        present.clear()
        shortcuts.forget(item, None)
        assert codec.from_item(Name, item) is not first
    assert len(charged) == 1


def test_nodes_that_are_as_before_are_read_once_and_charged_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(call: Any) -> Content:
        names = filter(None, call.event["body"].split(","))
        nodes = [{"name": name, "uid": "u", "created_at": "2026-11-02T12:00:00Z", "ready": "True"} for name in names]
        head = {"sequence": 1, "observed_at": "2026-11-02T12:00:00Z", "agent_version": "2", "kubernetes_version": "v1"}
        document = {**head, "ca_hash": "sha256:" + "0" * 64, "nodes": nodes}
        return Content(document, Observation.model_validate(document), None, None, False)

    def posted(cluster: str, nodes: str) -> Any:
        post = posts.of(cluster, nodes)
        repetitions.append(post.repeated)
        event = {"body": "" if post.repeated else nodes, PLAYED: post}
        return vars(serve)["read_content"](SimpleNamespace(event=event)).model

    charged: list[float] = []
    repetitions: list[bool] = []
    posts = Posts(charged.append)
    monkeypatch.setattr(serve, "read_content", read)
    with posts.active():
        answers = [posted("one", "a,b"), posted("one", "a,b"), posted("two", "a,b"), posted("one", "a,b,c")]
    assert repetitions == [False, True, False, False]
    assert [[node.name for node in answer.nodes] for answer in answers] == [["a", "b"]] * 3 + [["a", "b", "c"]]
    assert len(charged) == 1
    assert charged[0] >= 0
