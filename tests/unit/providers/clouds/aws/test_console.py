"""The console of a machine is read with what the cloud has: the newest output, else what it kept of the boot."""

from __future__ import annotations

from typing import Any

import pytest

from local.aws.corrections.compute.console import boot_text, shown_consoles
from local.aws.corrections.refusals import planned_refusals
from stockyard.errors import PermissionDenied


@pytest.mark.parametrize("instance_type", ["t3.large", "m4.large"])
def test_console_of_a_control_plane_is_read(yard: Any, instance_type: str) -> None:
    facts = yard.with_settings(control_plane_instance_type=instance_type).create()
    with shown_consoles():
        text = yard.provider.console(yard.work("control_plane"))
    assert text == boot_text(facts["instance_id"])


def test_nothing_is_asked_without_a_machine(yard: Any) -> None:
    yard.ensure("network")
    with planned_refusals({}, {"ec2:GetConsoleOutput": 1}, lambda _: True):
        assert yard.provider.console(yard.work("control_plane")) is None


def test_console_may_be_empty_or_gone(yard: Any) -> None:
    yard.create()
    with shown_consoles(lambda _: ""):
        assert yard.provider.console(yard.work("control_plane")) == ""
    line = yard.ledger.find("instance", "control-plane")
    yard.ledger.made(line, "i-00000000000000000")
    assert yard.provider.console(yard.work("control_plane")) == ""


def test_missing_permission_is_said(yard: Any) -> None:
    yard.create()
    with planned_refusals({}, {"ec2:GetConsoleOutput": 1}, lambda _: True), pytest.raises(PermissionDenied):
        yard.provider.console(yard.work("control_plane"))
