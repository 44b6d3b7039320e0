"""Mutants without the mends for reported nodes, in the product or in the agent's report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from stockyard.operations.fleet.state import fleet_nodes, reported
from tests.unit.operations.fleet.disruption.conftest import pod
from tests.workflows.people.acts import CORDON, DAEMON_GROWS, NOT_READY, READY_AGAIN, SHRINKS, TAINT, TAINTS
from tests.workflows.people.pods import PodsBesideDaemon

_TAINTS_OF = reported.taints_of
_CLOSING = {CORDON: reported.UNSCHEDULABLE, TAINT: TAINTS[0][0]}


def _without_taint(key: str) -> Any:
    def taints_of(*node: Any, initialized: bool) -> tuple[Any, ...]:
        return tuple(taint for taint in _TAINTS_OF(*node, initialized=initialized) if taint.key != key)

    return patch.object(fleet_nodes, "taints_of", taints_of)


def _promised(self: Any, claim: Any, _facts: Any, *, initialized: bool) -> Any:
    return self.promises.allocatable(claim)


@contextmanager
def _together(*patches: Any) -> Iterator[None]:
    with ExitStack() as stack:
        for each in patches:
            stack.enter_context(each)
        yield


def _ready_whatever_is_told() -> Any:
    return _together(
        patch.object(fleet_nodes, "_unschedulable_reason", lambda *_, **__: None),
        patch.object(fleet_nodes.FleetNode, "is_ready", property(lambda _: True)),
    )


MUTANTS: Mapping[str, Callable[[], Any]] = {
    **{act: lambda key=key: _without_taint(key) for act, key in _CLOSING.items()},
    SHRINKS: lambda: patch.object(fleet_nodes._Reading, "_allocatable", _promised),
    NOT_READY: _ready_whatever_is_told,
    READY_AGAIN: _ready_whatever_is_told,
    DAEMON_GROWS: lambda: patch.object(
        PodsBesideDaemon, "told_daemon", property(lambda _: pod("100m", app="proxy"))
    ),
}  # fmt: skip
"""By the act with which a judge must find something: a closed, smaller or silent node is room as before, and pods of a
DaemonSet are as large as its template."""
