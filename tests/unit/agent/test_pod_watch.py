"""The agent lists the pods once and then watches them, and it goes on when a watch fails."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from agent.stockyard_agent.transport import HttpRequest, HttpResponse
from local.kubernetes.api import Fault
from local.kubernetes.store import CHANGES
from tests.unit.agent.rig import Rig


class Watches:
    """Notes the agent's requests to the API server; ``answers`` are given to the next watches instead."""

    def __init__(self, rig: Rig) -> None:
        self.requests: list[str] = []
        self.answers: list[HttpResponse] = []
        rig.around = self._around

    def _around(self, request: HttpRequest, deliver: Any) -> HttpResponse:
        self.requests.append(request.url)
        if self.answers and "watch=true" in request.url and "/api/v1/pods?" in request.url:
            return self.answers.pop(0)
        answer: HttpResponse = deliver(request)
        return answer

    @property
    def lists(self) -> int:
        return sum("/api/v1/pods?" in url and "watch" not in url for url in self.requests)

    @property
    def watches(self) -> Sequence[str]:
        return [url for url in self.requests if "watch=true" in url and "/api/v1/pods?" in url]


def event(kind: str, **body: Any) -> HttpResponse:
    return HttpResponse(200, {}, json.dumps({"type": kind, "object": body}).encode() + b"\n")


def test_pods_are_listed_once_and_then_watched_from_the_version_last_heard(rig: Rig) -> None:
    watches = Watches(rig)
    reports = rig.reports()
    rig.steps(reports, 3)
    rig.add_waiting("web-1")
    version = str(rig.kube.store.revision)
    rig.steps(reports, 2)
    assert watches.lists == 1
    assert len(watches.watches) == 4
    assert f"resourceVersion={version}" in watches.watches[-1]
    assert all("timeoutSeconds=1" in url and "allowWatchBookmarks=true" in url for url in watches.watches)


def test_a_bookmark_says_where_to_go_on(rig: Rig) -> None:
    watches = Watches(rig)
    reports = rig.reports()
    rig.steps(reports)
    watches.answers.append(event("BOOKMARK", metadata={"resourceVersion": "12345"}))
    rig.steps(reports, 2)
    assert "resourceVersion=12345" in watches.watches[-1]
    assert len(rig.platform.pods.posts) == 1


@pytest.mark.parametrize("how", ["compacted", "many changes", "refused"])
def test_what_the_server_no_longer_knows_is_listed_again(rig: Rig, how: str) -> None:
    watches = Watches(rig)
    first = rig.add_waiting("web-1")
    reports = rig.reports()
    rig.steps(reports, 2)
    rig.kube.store.remove(first, {})
    for number in range(CHANGES if how == "many changes" else 1):
        rig.add_waiting(f"new-{number}")
    if how == "compacted":
        rig.kube.store.compact()
    if how == "refused":
        rig.kube.faults.append(Fault("watch", "pods", 410))
    rig.steps(reports, 4)
    assert watches.lists >= 2
    names = [name for _, names in rig.platform.pods.pending for name in names]
    assert (names[0], "web/web-1" in names) == ("web/new-0", False)
    assert rig.platform.pods.posts[-1]["base"] is not None


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (event("ERROR", code=500, reason="InternalError", message="etcd"), "500 InternalError: etcd"),
        (HttpResponse(200, {}, b"<html>\n"), "no event"),
        (HttpResponse(200, {}, b'{"type": "ADDED"}\n'), "no event"),
        (event("ADDED", metadata={"name": "web-1"}), "KeyError"),
    ],
)
def test_a_watch_that_fails_is_tried_again_after_a_pause(rig: Rig, answer: HttpResponse, words: str) -> None:
    watches = Watches(rig)
    reports = rig.reports()
    rig.steps(reports)
    watches.answers.append(answer)
    assert reports.step() == 1.5
    assert words in rig.logs[-1]
    rig.add_waiting("web-1")
    rig.steps(reports, 2)
    assert rig.platform.pods.pending == [(1, ["web/web-1"])]
    assert watches.lists == 1
    assert "Reports of pods are well again" in rig.logs


def test_events_of_unknown_kinds_are_passed_over(rig: Rig) -> None:
    watches = Watches(rig)
    reports = rig.reports()
    rig.steps(reports)
    watches.answers.append(event("NOVELTY"))
    assert reports.step() == 1.0


def test_an_agent_that_may_not_watch_yet_says_so_and_goes_on(rig: Rig) -> None:
    """One that was upgraded under the roles of an older one."""
    (role,) = [
        document
        for key, document in rig.kube.store.objects.items()
        if key.resource == "clusterroles" and key.name == "stockyard-agent"
    ]
    role["rules"] = [{**rule, "verbs": [verb for verb in rule["verbs"] if verb != "watch"]} for rule in role["rules"]]
    reports = rig.reports()
    rig.steps(reports, 2)
    assert "cannot watch" in rig.logs[-1]
    rig.rounds(rig.agent(), 1)
    assert len(rig.platform.posts) == 1
