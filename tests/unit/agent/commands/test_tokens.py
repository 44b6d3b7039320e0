"""Join tokens: made, adopted, replaced, removed; nodes can join with them and nobody reads them."""

from __future__ import annotations

import base64
import json
from datetime import timedelta

import pytest

from agent.stockyard_agent.observation import timestamp
from local.kubernetes.api import Fault, StatusError, node
from tests.unit.agent.rig import SECRET, START, TOKEN, Rig


def data_of(rig: Rig) -> dict[str, str]:
    secret = rig.token_secret()
    assert secret is not None
    return {name: base64.b64decode(value).decode() for name, value in secret["data"].items()}


def test_node_joins_with_bootstrap_token_until_expiry(rig: Rig) -> None:
    rig.order_token()
    rig.until_ended(rig.agent())
    assert rig.platform.results_by_id["cmd_t"]["data"] == {
        "token_id": "abcdef",
        "expires_at": timestamp(rig.clock.now)[:11] + "03:19:05.000Z",
    }
    secret = rig.token_secret()
    assert secret is not None
    assert secret["type"] == "bootstrap.kubernetes.io/token"
    assert data_of(rig) == {
        "token-id": "abcdef",
        "token-secret": "0123456789abcdef",
        "expiration": "2026-01-02T03:19:05Z",
        "usage-bootstrap-authentication": "true",
        "usage-bootstrap-signing": "true",
        "auth-extra-groups": "system:bootstrappers:stockyard:join,system:bootstrappers:stockyard:node:worker-1",
        "description": "Stockyard: node worker-1 of node claim ncl_1",
    }
    agent = rig.agent()
    rig.join(agent, TOKEN, node("worker-1", claim="ncl_1"))
    rig.rounds(agent, 1)
    assert [(item["name"], item["claim"]) for item in rig.platform.posts[-1]["nodes"]] == [("worker-1", "ncl_1")]
    with pytest.raises(StatusError, match="Unauthorized"):
        rig.join(agent, "abcdef.ffffffffffffffff", node("worker-1"))
    rig.clock.later(900)
    with pytest.raises(StatusError, match="Unauthorized"):
        rig.join(agent, TOKEN, node("worker-1"))


def test_bootstrap_token_is_idempotent(rig: Rig) -> None:
    rig.order_token()
    rig.until_ended(rig.agent())
    before = json.dumps(rig.token_secret())
    rig.order_token("again", seconds=int((START + timedelta(seconds=900) - rig.clock.now).total_seconds()))
    rig.until_ended(rig.agent())
    assert rig.platform.results_by_id["cmd_again"]["status"] == "done"
    assert json.dumps(rig.token_secret()) == before


def test_bootstrap_token_replaces_other_token_of_same_id(rig: Rig) -> None:
    rig.order_token(token="abcdef.ffffffffffffffff")
    rig.until_ended(rig.agent())
    rig.order_token("new")
    rig.until_ended(rig.agent())
    assert data_of(rig)["token-secret"] == "0123456789abcdef"


def test_bootstrap_token_does_not_replace_secret_of_other_type(rig: Rig) -> None:
    meta = {"name": "bootstrap-token-abcdef", "namespace": "kube-system"}
    rig.kube.install([{"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": "Opaque"}])
    rig.order_token()
    rig.until_ended(rig.agent())
    assert rig.platform.results_by_id["cmd_t"]["status"] == "failed"
    assert "422" in rig.platform.results_by_id["cmd_t"]["message"]
    assert "data" not in (rig.token_secret() or {})


def test_no_token_is_made_for_a_node_that_is_somebody_elses(rig: Rig) -> None:
    """Somebody who may name a claim must not become the node that runs the control plane."""
    rig.add_node("worker-1")
    rig.order_token()
    rig.until_ended(rig.agent())
    result = rig.platform.results_by_id["cmd_t"]
    assert (result["status"], rig.token_secret()) == ("failed", None)
    assert "not the claim's" in result["message"]


def test_a_token_is_made_again_for_a_node_that_has_come(rig: Rig) -> None:
    rig.add_node("worker-1", claim="ncl_1")
    rig.order_token()
    rig.until_ended(rig.agent())
    assert rig.platform.results_by_id["cmd_t"]["status"] == "done"


def test_bootstrap_token_deleted_meanwhile_is_created_in_next_round(rig: Rig) -> None:
    rig.order_token()
    rig.until_ended(rig.agent())
    rig.order_token("late")
    rig.kube.faults.append(Fault("update", "secrets", 404))
    agent = rig.agent()
    rig.rounds(agent, 1)
    rig.platform.order("r", "remove_token", token_id="abcdef")
    rig.rounds(rig.agent(), 1)
    rig.until_ended(agent)
    assert rig.platform.results_by_id["cmd_late"]["status"] == "done"


def test_remove_token_is_idempotent(rig: Rig) -> None:
    rig.order_token()
    rig.until_ended(rig.agent())
    for name in ("one", "two"):
        rig.platform.order(name, "remove_token", token_id="abcdef")
        rig.until_ended(rig.agent())
        assert rig.platform.results_by_id[f"cmd_{name}"]["status"] == "done"
        assert rig.token_secret() is None


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"token": "abcdef0123456789abcdef"}, "/token"),
        ({"token": "ABCDEF.0123456789abcdef"}, "/token"),
        ({"token": None}, "/token"),
        ({"token": TOKEN + "\n"}, "/token"),
        ({"claim": "a b"}, "/claim"),
        ({"node": None}, "/node"),
        ({"node": "worker:1"}, "/node"),
        ({"node": "w" * 242}, "up to 241 characters"),
        ({"expires_at": None}, "/expires_at"),
        ({"expires_at": "tomorrow"}, "/expires_at"),
        ({"expires_at": "2026-01-02T03:19:05"}, "/expires_at"),
        ({"expires_at": "2026-01-02T03:04:05Z"}, "ended"),
        ({"deadline": "2026-01-02T03:04:05.678Z"}, "deadline"),
    ],
)
def test_invalid_bootstrap_token_fails_and_is_not_repeated(rig: Rig, change: dict[str, object], named: str) -> None:
    rig.order_token()
    rig.platform.commands["cmd_t"].update(change)
    rig.until_ended(rig.agent())
    result = rig.platform.results_by_id["cmd_t"]
    assert result["status"] == "failed"
    assert named in result["message"]
    assert rig.token_secret() is None
    assert "0123456789" not in json.dumps(rig.platform.posts)


def test_secrets_are_neither_posted_nor_logged(rig: Rig) -> None:
    rig.order_token()
    echo = f"Secret is invalid: 0123456789abcdef of {TOKEN}"
    rig.kube.faults.append(Fault("create", "secrets", 422, message=echo))
    rig.until_ended(rig.agent())
    rig.order_token("second")
    rig.kube.faults.append(Fault("create", "secrets", 500, times=3, message=echo))
    agent = rig.agent()
    rig.rounds(agent, 2)
    assert rig.platform.results["second"]["status"] == "running"
    rig.until_ended(agent)
    rig.platform.good.clear()
    rig.platform.refusals.append((500, {}))
    rig.rounds(agent, 2)
    output = json.dumps(rig.platform.posts) + "\n".join(rig.logs)
    assert "cmd_second done" in output
    for secret in ("0123456789abcdef", SECRET, rig.account, *rig.platform.tokens):
        assert secret not in output
