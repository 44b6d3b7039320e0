"""States of a cluster and of its operations: what a stack waits for, and what is its failure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from local.cloudformation import StackFailed
from stockyard.errors import VendorQuotaExceeded
from stockyard_stack_resources.api import Api, Login, Reply
from stockyard_stack_resources.documents import differences, is_shown, merge_patch, still_to_say
from stockyard_stack_resources.errors import StackResourceError
from stockyard_stack_resources.kinds import KINDS
from stockyard_stack_resources.progress import LONGEST_AUTHORITY, advance
from stockyard_stack_resources.steps import verify_account
from tests.constructs.documents import cluster, yard
from tests.harness.stacks.rig import rig

ERROR = {"cause": "No room.", "hint": "Ask for more.", "phase": "network"}
RECORD = {
    "id": "clu_1",
    "name": "demo",
    "endpoint": "https://k",
    "client_id": "c",
    "operation_id": "op_1",
    "message": "",
}


def served(operation: Mapping[str, Any], config: str = "certificate-authority-data: Q0E=", **cluster: Any) -> Api:
    """An API with one cluster, its operation and its kubeconfig."""
    answers = {
        "clusters/clu_1": {**RECORD, **cluster},
        "operations/op_1": operation,
        "clusters/clu_1/kubeconfig": {"kubeconfig": config},
    }

    def send(_method: str, url: str, _headers: Mapping[str, str], _body: bytes | None) -> Reply:
        body = answers.get(url.partition("/v1/")[2])
        return Reply(404, {}, {"detail": "gone"}) if body is None else Reply(200, {}, body)

    login = Login("https://issuer", lambda: ("a", "b"), send)
    login._token, login._ends = "t", float("inf")
    return Api("https://api", login, send)


def progress(status: str, operation: Mapping[str, Any], touched: Any = None, **more: Any) -> Any:
    api = served(operation, **more)
    return advance(api, KINDS["Cluster"], {**RECORD, "status": status}, touched)


@pytest.mark.parametrize(
    ("status", "operation", "touched"),
    [
        ("preparing", {"status": "running"}, None),
        ("ready", {"status": "running"}, ("/description",)),
        ("ready", {"status": "queued"}, ("/settings/support",)),
    ],
)
def test_a_stack_waits_for_what_is_under_way(status: str, operation: Any, touched: Any) -> None:
    assert progress(status, operation, touched) is None


@pytest.mark.parametrize(
    ("status", "operation", "text"),
    [
        ("failed", {"status": "failed", "error": ERROR}, r"Cluster demo in phase network: No room\. Ask for more\."),
        ("failed", {}, "Cluster demo: "),
        ("deleting", {"status": "running"}, "being deleted"),
        ("ready", {"status": "failed", "error": ERROR, "changes": [{"pointer": "/settings/groups/0/x"}]}, "No room"),
        ("ready", {"status": "cancelled", "changes": [{"pointer": "/settings/groups"}]}, "is cancelled"),
        ("ready", {"status": "reverted", "changes": [{"pointer": "/settings/groups"}]}, "is reverted"),
    ],
)
def test_a_failure_of_what_the_stack_has_changed_is_the_stacks(status: str, operation: Any, text: str) -> None:
    with pytest.raises(StackResourceError, match=text):
        progress(status, operation, ("/settings/groups",))


def test_a_failure_of_something_else_is_not_the_stacks() -> None:
    operation = {"status": "failed", "error": ERROR, "changes": [{"pointer": "/settings/support"}]}
    outputs = progress("ready", operation, ("/settings/groups", "/settings/supportive"))
    assert outputs == {
        "Id": "clu_1",
        "Name": "demo",
        "Endpoint": "https://k",
        "ClientId": "c",
        "CertificateAuthority": "Q0E=",
    }


def test_an_authority_that_is_too_long_for_an_answer_is_left_out() -> None:
    for config in ("clusters: []", f"certificate-authority-data: {'A' * (LONGEST_AUTHORITY + 1)}"):
        assert "CertificateAuthority" not in progress("ready", {"status": "succeeded"}, config=config)
    assert progress("ready", {}, config='{"certificate-authority-data": "QQ=="}')["CertificateAuthority"] == "QQ=="


def test_a_creation_that_fails_is_told_with_its_cause_and_nothing_is_left() -> None:
    with rig() as region:
        before = region.product.things()
        region.product.world.provider.faults["network"] = [VendorQuotaExceeded("no VPC is left")] * 40
        with pytest.raises(StackFailed, match="phase network: no VPC is left") as failure:
            region.runner.create("platform", yard())
        assert failure.value.status == "ROLLBACK_COMPLETE"
        region.settle()
        assert region.product.things() == before


def test_a_record_that_somebody_changes_meanwhile_is_read_again() -> None:
    with rig() as region:
        stack = region.runner.create("platform", cluster())
        send, changed = region.product.send, []

        def racing(method: str, url: str, headers: Any, body: Any) -> Reply:
            if method == "PATCH" and not changed:
                changed.append(True)
                send("PATCH", url, {**headers}, b'{"description": "Of somebody"}')
            return send(method, url, headers, body)

        region.runner.provider.on_event.__self__.life.api.send = racing  # type: ignore[attr-defined]
        region.runner.update(stack, cluster(tags={"team": "other"}))
        (record,) = region.product.send("GET", "https://stockyard.test/v1/clusters", AUTHORIZED, None).body["items"]
        assert (record["description"], record["tags"]["team"]) == ("Of somebody", "other")


AUTHORIZED = {"Authorization": "Bearer the-token"}


def test_patches_say_what_differs_and_take_away_what_is_there() -> None:
    old, new = {"a": 1, "m": {"x": 1, "y": 2}, "s": "t", "gone": [1]}, {"a": 1, "m": {"x": 3}, "s": "u"}
    patch = merge_patch(new, old)
    assert patch == {"m": {"x": 3, "y": None}, "s": "u", "gone": None}
    assert list(differences(new, old)) == ["/gone", "/m/x", "/m/y", "/s"]
    assert still_to_say(patch, old, old, {"gone": []}) == {"m": {"x": 3, "y": None}, "s": "u", "gone": []}
    assert still_to_say(patch, old, {"m": {"x": 3}, "s": "u", "gone": []}, {}) == {}
    assert not merge_patch(old, old)
    assert is_shown({"a": [{"b": 1}]}, {"a": [{"b": 1, "c": 2}], "d": 3})
    assert not is_shown([1], [1, 2])


def test_an_account_is_proven_once_its_role_is_known_everywhere() -> None:
    from datetime import timedelta

    replies = [{"verification": "unverified"}, {"verification": "failed", "verification_message": "no such role"}]
    calls: list[str] = []

    def send(method: str, _url: str, headers: Mapping[str, str], _body: bytes | None) -> Reply:
        calls.append(f"{method} {headers.get('Idempotency-Key', '')}")
        return Reply(200, {}, replies[0 if method == "GET" else 1])

    api = served({})
    api.send = send
    assert verify_account(api, {"account": 2}, "r", timedelta(seconds=20)) is None
    assert verify_account(api, {"account": 2}, "r", timedelta(seconds=40)) is None
    assert len(set(calls)) == 3, "each try is a request of its own"
    with pytest.raises(StackResourceError, match="not verified: no such role"):
        verify_account(api, {"account": 2}, "r", timedelta(minutes=6))
    replies[1] = {"verification": "verified", "id": 2, "name": "a", "external_id": "x"}
    outputs = verify_account(api, {"account": 2}, "r", timedelta(seconds=60))
    assert outputs == {"Id": 2, "Number": 2, "Name": "a", "ExternalId": "x", "Verification": "verified"}
