"""Repeated calls: what a retry sends, and what the answer to it proves."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from stockyard.domain.values.times import to_text
from stockyard.errors import NotYetVisible, PermissionDenied, VendorRefused, VendorTimeout
from stockyard.providers.clouds.aws.calls import Calls

TOKENED = [
    ("network", "create_route_table"),
    ("network", "create_nat_gateway"),
    ("control_plane", "run_instances"),
]


class _Wire:
    """Records the calls of one operation, and answers them in place of AWS."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, operation: str) -> None:
        self.sent: list[dict[str, Any]] = []
        self.answers: list[Exception | None] = []
        """An error in place of the call, one each; None lets it through."""
        self.lost = False
        """Whether the calls happen and their answer does not arrive."""
        real, wire = Calls.call, self

        def call(self: Calls, service: str, name: str, **parameters: Any) -> Any:
            if name != operation:
                return real(self, service, name, **parameters)
            wire.sent.append(parameters)
            error = wire.answers.pop(0) if wire.answers else None
            if error is not None:
                raise error
            answer = real(self, service, name, **parameters)
            if wire.lost:
                raise VendorTimeout("no answer in time")
            return answer

        monkeypatch.setattr(Calls, "call", call)


def _before(yard: Any, phase: str) -> None:
    for earlier in ("network", "security", "identity", "endpoint", "bastion", "control_plane"):
        if earlier == phase:
            return
        yard.ensure(earlier)


@pytest.mark.parametrize(("phase", "operation"), TOKENED)
def test_call_with_client_token_is_repeated_unchanged(
    yard: Any, monkeypatch: pytest.MonkeyPatch, phase: str, operation: str
) -> None:
    _before(yard, phase)
    wire = _Wire(monkeypatch, operation)
    wire.answers = [VendorTimeout("no answer in time")]
    with pytest.raises(VendorTimeout):
        yard.ensure(phase)
    yard.later(61)
    yard.ensure(phase)
    assert wire.sent[1] == wire.sent[0]


@pytest.mark.parametrize(("phase", "operation"), TOKENED)
def test_refused_token_proves_existing_resource(
    yard: Any, monkeypatch: pytest.MonkeyPatch, phase: str, operation: str
) -> None:
    _before(yard, phase)
    lines = {line.id for line in yard.ledger.lines()}
    wire = _Wire(monkeypatch, operation)
    wire.answers = [NotYetVisible("made before", code="IdempotentParameterMismatch")]
    with pytest.raises(NotYetVisible):
        yard.ensure(phase)
    assert [line.state for line in yard.ledger.lines() if line.id not in lines][-1] == "intended"
    yard.later(61)
    yard.ensure(phase)
    assert {line.state for line in yard.ledger.lines()} == {"made"}


def test_name_created_by_last_try_is_not_judged_by_age_of_first_try(yard: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    yard.ensure("network")
    yard.ledger.phase = "security"
    yard.ledger.intend("security_group", "balancer", {"name": f"vantage-{yard.cluster.client_id}-balancer-sg"})
    yard.later(300)
    wire = _Wire(monkeypatch, "create_security_group")
    wire.lost = True
    with pytest.raises(VendorTimeout):
        yard.provider.ensure("security", yard.work("security"))
    [line] = yard.ledger.lines("security")
    assert line.intended_at == to_text(yard.now)
    # hidden: a search that shows nothing yet
    real = Calls.pages

    def pages(self: Calls, service: str, operation: str, key: str, **parameters: Any) -> Any:
        return (
            iter(()) if operation == "describe_security_groups" else real(self, service, operation, key, **parameters)
        )

    with monkeypatch.context() as hidden:
        hidden.setattr(Calls, "pages", pages)
        yard.now += timedelta(seconds=30)
        assert not yard.provider.remove("security", yard.work("security")).done
    yard.remove("security")
    assert [x for x in yard.living() if x.startswith("sg-")] == []


def test_existing_name_is_foreign_only_after_visibility_delay(yard: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    wire = _Wire(monkeypatch, "create_role")
    name_in_use = VendorRefused("exists", code="EntityAlreadyExists")
    wire.answers = [name_in_use, name_in_use, name_in_use]
    for _ in range(2):
        with pytest.raises(NotYetVisible):
            yard.provider.ensure("identity", yard.work("identity"))
        yard.later(40)
    with pytest.raises(VendorRefused):
        yard.provider.ensure("identity", yard.work("identity"))


def test_denial_after_creation_is_retried_and_lasting_one_is_raised(yard: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    denial = PermissionDenied("AttachInternetGateway is not allowed", code="UnauthorizedOperation")
    wire = _Wire(monkeypatch, "attach_internet_gateway")
    wire.answers = [denial, denial, denial]
    with pytest.raises(NotYetVisible, match="AttachInternetGateway"):
        yard.provider.ensure("network", yard.work("network"))
    yard.later(10)
    with pytest.raises(NotYetVisible):
        yard.provider.ensure("network", yard.work("network"))
    yard.later(61)
    with pytest.raises(PermissionDenied):
        yard.provider.ensure("network", yard.work("network"))
    yard.ensure("network")


def test_denied_first_call_is_raised_at_once(yard: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    wire = _Wire(monkeypatch, "create_vpc")
    wire.answers = [PermissionDenied("CreateVpc is not allowed", code="UnauthorizedOperation")]
    with pytest.raises(PermissionDenied):
        yard.provider.ensure("network", yard.work("network"))
    assert yard.ledger.lines() == []
