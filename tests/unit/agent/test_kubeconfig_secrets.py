"""Secrets with kubeconfigs: written while somebody asks, never ten minutes old, and removed when nobody asks."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from agent.stockyard_agent.kubeconfig_secrets import KubeconfigSecrets, secret_of
from agent.stockyard_agent.transport import HttpRequest, HttpResponse, Unreachable
from local.kubernetes.store import Key, Object
from tests.unit.agent.rig import Rig

PLACE = ("web", "west-kubeconfig")
TEN_MINUTES = 600.0


def stored(rig: Rig, full_name: tuple[str, str] = PLACE) -> Object | None:
    return rig.kube.store.objects.get(Key("", "secrets", *full_name))


def token(rig: Rig) -> str:
    secret = stored(rig)
    return "" if secret is None else base64.b64decode(secret["data"]["kubeconfig"]).decode()


def ask(rig: Rig) -> KubeconfigSecrets:
    rig.platform.secrets.names.add(PLACE)
    secrets = rig.secrets()
    rig.agent(secrets=secrets).round()
    return secrets


def run(rig: Rig, secrets: KubeconfigSecrets, seconds: float) -> float:
    """Steps for so long; the oldest that the Secret was meanwhile."""
    end, oldest = rig.clock.monotonic() + seconds, 0.0
    written_at, last = rig.clock.monotonic(), token(rig)
    while rig.clock.monotonic() < end:
        rig.clock.later(max(secrets.step(), 1))
        if token(rig) != last:
            written_at, last = rig.clock.monotonic(), token(rig)
        oldest = max(oldest, rig.clock.monotonic() - written_at)
    return oldest


def test_nothing_is_asked_or_written_while_nobody_asks() -> None:
    rig = Rig()
    secrets = rig.secrets()
    rig.agent(secrets=secrets).round()
    calls = len(rig.kube.calls)
    run(rig, secrets, 3600)
    assert len(rig.kube.calls) == calls
    assert (rig.platform.secrets.minted, rig.platform.secrets.results) == (0, [])


def test_the_secret_is_never_ten_minutes_old_while_it_is_asked_for() -> None:
    rig = Rig()
    secrets = ask(rig)
    secrets.step()
    assert token(rig) == "token-1"
    secret = stored(rig)
    assert secret is not None
    assert secret["metadata"]["labels"]["stockyard.dev/kubeconfig"] == "true"
    assert secret["metadata"]["annotations"] == {"stockyard.dev/expires-at": "soon"}
    assert run(rig, secrets, 7200) < TEN_MINUTES / 2
    # It is told of once: what is well is no news.
    assert [result["status"] for result in rig.platform.secrets.results] == ["written"]


def test_it_is_fresh_within_ten_minutes_whatever_fails_for_a_while() -> None:
    rig = Rig()
    secrets = ask(rig)
    secrets.step()
    rig.platform.secrets.refusals = 5
    assert run(rig, secrets, 3600) < TEN_MINUTES
    down_at = rig.clock.monotonic()

    def lost(request: HttpRequest, deliver: Any) -> HttpResponse:
        if request.url.endswith("kubeconfig-secrets") and rig.clock.monotonic() < down_at + 300:
            raise Unreachable("no route")
        return deliver(request)

    rig.around = lost
    assert run(rig, secrets, 3600) < TEN_MINUTES
    # An agent that begins anew writes at once.
    last = token(rig)
    rig.clock.later(3000)
    secrets = ask(rig)
    secrets.step()
    assert token(rig) != last


def test_what_nobody_asks_for_any_more_is_removed_and_told() -> None:
    rig = Rig()
    secrets = ask(rig)
    secrets.step()
    rig.platform.secrets.names.clear()
    rig.platform.secrets.removed.add(PLACE)
    run(rig, secrets, 300)
    assert stored(rig) is None
    assert (rig.platform.secrets.results[-1]["status"], rig.platform.secrets.removed) == ("removed", set())


def test_what_the_cluster_refuses_is_told_and_tried_again() -> None:
    rig = Rig()
    refuses = True

    def around(request: HttpRequest, deliver: Any) -> HttpResponse:
        if refuses and request.url.startswith("https://kube.test") and "/secrets" in request.url:
            return HttpResponse(404, {}, b'{"kind":"Status","message":"namespaces \\"web\\" not found"}')
        return deliver(request)

    rig.around = around
    secrets = ask(rig)
    run(rig, secrets, 300)
    (result,) = rig.platform.secrets.results
    assert (result["status"], result["message"]) == ("failed", 'web/west-kubeconfig: namespaces "web" not found')
    refuses = False
    run(rig, secrets, 120)
    assert token(rig)
    assert rig.platform.secrets.results[-1]["status"] == "written"
    assert not any("token-" in line for line in rig.logs), "a token stands in no log"


def test_an_answer_without_a_kubeconfig_writes_nothing() -> None:
    answers: list[dict[str, Any]] = [{}, {"data": {}}, {"data": {"kubeconfig": 1}}, {"data": "x"}]
    for secret in answers:
        with pytest.raises(ValueError, match="without a kubeconfig"):
            secret_of("web", "a", secret)
