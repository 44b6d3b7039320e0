"""Rounds: intervals, back-off, tokens of Stockyard, and what goes wrong on the way there."""

from __future__ import annotations

from typing import Any

import pytest

from agent.stockyard_agent.pacing import BACK_OFF_MOST
from agent.stockyard_agent.transport import HttpResponse, Unreachable
from local.kubernetes.api import Fault
from tests.unit.agent.rig import SECRET, Rig


@pytest.mark.parametrize(
    ("interval", "waits"),
    [
        (15, 15),
        (30.5, 30.5),
        (0, 1),
        (-5, 1),
        (86400, 3600),
        ("soon", 15),
        (None, 15),
        (float("inf"), 15),
        (float("nan"), 15),
    ],
)
def test_loop_uses_interval_of_answer_within_limits(rig: Rig, interval: Any, waits: float) -> None:
    rig.platform.interval = interval
    assert rig.agent().round() == pytest.approx(waits)


def test_loop_jitters_pause(rig: Rig) -> None:
    agent = rig.agent()
    waits = []
    for number in (0.0, 0.999):
        agent._jitter = lambda number=number: number
        waits.append(agent.round())
    assert waits == pytest.approx([13.5, 16.5], abs=0.01)


def test_loop_backs_off_after_failures_and_resets(rig: Rig) -> None:
    rig.kube.faults.append(Fault("list", "nodes", 503, times=12))
    agent = rig.agent()
    waits = [agent.round() for _ in range(12)]
    assert waits[:4] == [1.5, 3.0, 6.0, 12.0]
    assert waits == sorted(waits)
    assert waits[-1] == BACK_OFF_MOST * 0.75
    assert agent.round() == 15
    assert rig.logs[-1] == "well again"
    rig.kube.faults.append(Fault("list", "nodes", 503))
    assert agent.round() == 1.5


@pytest.mark.parametrize(
    ("status", "after", "waits"), [(429, "70", 70), (503, "1", 1.5), (500, "", 1.5), (429, "x", 1.5)]
)
def test_loop_waits_as_retry_after_asks(rig: Rig, status: int, after: str, waits: float) -> None:
    rig.platform.refusals.append((status, {"retry-after": after}))
    assert rig.agent().round() == waits
    assert f"Stockyard answered {status}: not now" in rig.logs[-1]


def test_access_token_is_renewed_shortly_before_expiry(rig: Rig) -> None:
    agent = rig.agent()
    agent.round()
    rig.clock.later(239)
    agent.round()
    assert rig.platform.tokens == ["access-0"]
    rig.clock.later(2)
    agent.round()
    assert rig.platform.tokens == ["access-0", "access-1"]


def test_short_lived_access_token_is_used_for_most_of_its_lifetime(rig: Rig) -> None:
    rig.platform.expires_in = 20
    agent = rig.agent()
    for seconds in (0, 14, 2):
        rig.clock.later(seconds)
        agent.round()
    assert len(rig.platform.tokens) == 2


def test_rejected_access_token_is_renewed_once_in_same_round(rig: Rig) -> None:
    agent = rig.agent()
    agent.round()
    rig.platform.good.clear()
    assert agent.round() == 15
    assert len(rig.platform.posts) == 2
    rig.platform.refusals += [(401, {}), (401, {})]
    assert agent.round() == 1.5
    assert len(rig.platform.posts) == 2
    assert rig.platform.refusals == []
    assert agent.round() == 15


def test_wrong_client_secret_backs_off_and_is_not_logged(rig: Rig) -> None:
    agent = rig.agent()
    stockyard_api: Any = agent._stockyard
    stockyard_api._calls._credentials = lambda: ("the-client", "wr0ng")
    assert agent.round() == 1.5
    assert rig.logs[-1].startswith("The identity server answered 401")
    assert "wr0ng" not in rig.logs[-1]
    stockyard_api._calls._credentials = lambda: ("the-client", SECRET)
    assert agent.round() == 15, "a changed secret is taken up"


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b"{}", b'{"commands": {}}', b'{"access_token": 7, "expires_in": 1}', b"\xff"]
)
@pytest.mark.parametrize("path", ["/token", "/observations"])
def test_malformed_answer_backs_off(rig: Rig, path: str, body: bytes) -> None:
    agent = rig.agent()
    rig.around = lambda request, deliver: (
        HttpResponse(200, {}, body) if request.url.endswith(path) else deliver(request)
    )
    assert agent.round() == 1.5
    rig.around = None
    assert agent.round() == 15


def test_commands_wait_while_stockyard_is_unreachable(rig: Rig) -> None:
    rig.add_node("a")
    rig.add_pod("db", "a", labels={"app": "db"})
    budget = rig.add_budget("db", {"app": "db"}, 1)
    rig.platform.order("d", "drain", node="a", grace_seconds=None)
    agent = rig.agent()
    rig.rounds(agent, 2)
    rig.kube.store.get(budget)["spec"]["minAvailable"] = 0
    rig.platform.refusals += [(502, {})] * 3
    rig.rounds(agent, 3)
    assert rig.pods("a") == ["db"], "nobody says that the drain is still wanted"
    rig.until_ended(agent)
    assert rig.pods("a") == []


def test_lost_answer_loses_no_result(rig: Rig) -> None:
    rig.add_node("a")
    rig.platform.forgets = False
    rig.platform.order("c", "cordon", node="a")
    agent = rig.agent()
    rig.rounds(agent, 1)

    def around(request: Any, deliver: Any) -> Any:
        response = deliver(request)
        if request.url.endswith("/observations"):
            raise Unreachable("lost")
        return response

    rig.around = around
    rig.rounds(agent, 1)
    rig.around = None
    rig.rounds(agent, 1)
    assert [result["status"] for result in rig.platform.posts[-1]["results"]] == ["done"]
    assert len([call for call in rig.kube.calls if call.action.verb == "patch"]) == 1


def test_missing_files_back_off(rig: Rig) -> None:
    agent = rig.agent()

    def away() -> str:
        raise FileNotFoundError(2, "No such file or directory", "ca.crt")

    agent._authority = away
    assert agent.round() == 1.5
    assert "ca.crt" in rig.logs[-1]


def test_expired_account_token_is_a_transient_error(rig: Rig) -> None:
    rig.add_node("a")
    rig.platform.order("c", "cordon", node="a")
    agent = rig.agent()
    rig.kube.faults.append(Fault("patch", "nodes", 401))
    rig.rounds(agent, 1)
    rig.kube.revoke(rig.account)
    rig.rounds(agent, 1)
    assert "401 Unauthorized" in rig.logs[-1]
    rig.account = rig.kube.issue("stockyard-system", "stockyard-agent")
    rig.until_ended(agent)
    assert rig.platform.results_by_id["cmd_c"]["status"] == "done"


def test_loop_ends_when_pause_returns_true(rig: Rig) -> None:
    waits: list[float] = []

    def pause(seconds: float) -> bool:
        waits.append(seconds)
        return len(waits) == 32

    rig.agent().run(pause)
    assert waits == [1] * 32
    assert len(rig.platform.posts) == 3, "a round each 15 seconds"


def test_a_round_that_is_expected_comes_soon(rig: Rig) -> None:
    rig.platform.interval = 300
    agent = rig.agent()
    rounds: list[int] = []

    def pause(_: float) -> bool:
        rounds.append(len(rig.platform.posts))
        if len(rounds) == 3:
            agent.come_soon()
        return len(rounds) == 100

    agent.run(pause)
    assert [rounds.count(number) for number in (1, 2)] == [7, 93], "five seconds afterwards, and once"


def test_requests_of_certificates_are_looked_at_each_second_unless_the_api_is_silent(rig: Rig) -> None:
    def looks() -> int:
        return sum(call.action.resource == "certificatesigningrequests" for call in rig.kube.calls)

    waits: list[float] = []

    def pause(seconds: float) -> bool:
        waits.append(seconds)
        if len(waits) == 16:
            rig.kube.faults.append(Fault("list", "certificatesigningrequests", 503, times=1))
        return len(waits) == 30

    rig.agent().run(pause)
    assert looks() == 2 * 16 + 1, "two signers; the first look after the second round fails, and the next are left out"
    assert [line for line in rig.logs if "Requests of certificates wait: 503" in line]
    assert len(rig.platform.posts) == 2
