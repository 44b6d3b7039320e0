"""Objects of runs: sealed tasks and results, and states, which their programs have sealed before."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from stockyard.domain.run_records import RunState
from stockyard.operations.services import Services
from stockyard.ports.sites import Seals

TASK, RESULT = "task", "result"


def put_sealed(services: Services, seals: Seals, run_id: str, part: str, document: Mapping[str, Any]) -> None:
    """Keep a document of a run, sealed under the run's name."""
    sealed = seals.seal(_sealed_name(services, run_id, part), json.dumps(document).encode())
    services.objects.put(_name(run_id, part), sealed.encode())


def open_sealed(services: Services, seals: Seals, run_id: str, part: str) -> dict[str, Any] | None:
    """Open such a document; None where there is none, or its time is over."""
    sealed = services.objects.get(_name(run_id, part))
    if sealed is None:
        return None
    return dict(json.loads(seals.unseal(_sealed_name(services, run_id, part), sealed.decode())))


def applied_name(workspace: str) -> str:
    """Name of the object with the sealed task that was applied last."""
    return f"states/{workspace}/applied"


def open_applied(services: Services, seals: Seals, state: RunState) -> dict[str, Any] | None:
    """The task that was last to make something; None for none."""
    sealed = services.objects.get(applied_name(state.id)) if state.applied_by is not None else None
    if sealed is None or state.applied_by is None:
        return None
    return dict(json.loads(seals.unseal(_sealed_name(services, state.applied_by, TASK), sealed.decode())))


def keep_applied(services: Services, workspace: str, run_id: str) -> None:
    """Keep a run's sealed task beside the state, for as long as that is there."""
    sealed = services.objects.get(_name(run_id, TASK))
    if sealed is not None:
        services.objects.put(applied_name(workspace), sealed)


def state_name(workspace: str, run_id: str) -> str:
    """Name of the object with a state as that run has written it: each run has its own, so that none of one that is
    believed to be dead is ever read."""
    return f"states/{workspace}/{run_id}"


def _name(run_id: str, part: str) -> str:
    return f"runs/{run_id}/{part}"


def _sealed_name(services: Services, run_id: str, part: str) -> str:
    return f"{services.tenant}/{run_id}/{part}"
