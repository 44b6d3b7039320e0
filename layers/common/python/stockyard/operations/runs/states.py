"""States that runs keep, as OpenTofu's ``http`` backend reads, writes and locks them. Programs have sealed them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stockyard.domain.run_records import ProviderRun, RunState, StateLock
from stockyard.errors import IllegalTransition
from stockyard.operations.engine.advance import until_written
from stockyard.operations.runs.objects import state_name
from stockyard.operations.runs.program import check_running
from stockyard.operations.services import Services
from stockyard.ports import Replace


def read_state(services: Services, run: ProviderRun) -> dict[str, Any] | None:
    """The state that the run works on; None while nothing was kept."""
    state = _state(services, run)
    data = services.objects.get(state_name(state.id, state.kept_by)) if state.kept_by is not None else None
    return None if data is None else dict(json.loads(data))


def write_state(services: Services, run: ProviderRun, document: Mapping[str, Any], lock_id: str | None) -> None:
    """Keep the state. ``IllegalTransition`` unless the run holds its lock by that id."""
    _check_lock(_state(services, run), run, lock_id)
    services.objects.put(state_name(run.workspace, run.id), json.dumps(document).encode())
    _point(services, run, run.id, lock_id)


def remove_state(services: Services, run: ProviderRun) -> None:
    """Remove what was kept, as a program asks that has destroyed all of it."""
    _point(services, run, None, None)


@until_written("state changes too often to be kept")
def _point(services: Services, run: ProviderRun, kept_by: str | None, lock_id: str | None) -> None:
    state = _state(services, run)
    _check_lock(state, run, lock_id)
    if state.kept_by == kept_by:
        return
    services.store.commit(Replace(replace(state, kept_by=kept_by, version=state.version + 1)))
    if state.kept_by is not None:
        services.objects.delete(state_name(state.id, state.kept_by))


@until_written("state is locked by too many at once")
def take_lock(services: Services, run: ProviderRun, lock_id: str, info: Mapping[str, Any]) -> dict[str, Any] | None:
    """Lock the state for the run. None when the run holds it now; otherwise what its holder said of itself."""
    state = _state(services, run)
    if state.lock is not None:
        return None if (state.lock.run, state.lock.id) == (run.id, lock_id) else dict(state.lock.info)
    lock = StateLock(lock_id, run.id, dict(info))
    services.store.commit(Replace(replace(state, lock=lock, version=state.version + 1)))
    return None


@until_written("state is unlocked by too many at once")
def unlock(services: Services, run: ProviderRun) -> None:
    """Unlock the state. Its current run alone may, whoever has locked it: the one before has ended by then."""
    state = _state(services, run)
    if state.lock is not None:
        services.store.commit(Replace(replace(state, lock=None, version=state.version + 1)))


def _state(services: Services, run: ProviderRun) -> RunState:
    """The state of a run that is under way and is the state's current one."""
    check_running(run)
    state = services.store.get(RunState, run.workspace)
    if state is None or state.run != run.id:
        raise IllegalTransition("Another run works on the state now.")
    return state


def _check_lock(state: RunState, run: ProviderRun, lock_id: str | None) -> None:
    if state.lock is None or state.lock.run != run.id or (lock_id is not None and state.lock.id != lock_id):
        raise IllegalTransition("The run does not hold the lock of its state.")
