"""Requests of a run's program: it fetches its task once, sends what is printed, and tells how it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from stockyard.domain.records import NodeClaim, NodeEnvironment
from stockyard.domain.run_records import DIED, ProviderRun, RunEnd, RunState
from stockyard.domain.values import ids
from stockyard.domain.values.redaction import redact
from stockyard.errors import Conflict, IllegalTransition, NotFound, Unauthorized
from stockyard.operations.engine.advance import until_written
from stockyard.operations.engine.run_logs import append, end_run
from stockyard.operations.runs.objects import RESULT, TASK, keep_applied, open_sealed, put_sealed
from stockyard.operations.runs.tokens import REFUSED, passphrase_of
from stockyard.operations.services import Services
from stockyard.ports import Check, Replace
from stockyard.ports.sites import Seals

APPLY = "apply"
"""The command that makes something."""
HIDDEN = "(hidden)"
SHORTEST_SECRET = 6
"""Shorter values are in every text."""
MOST_ERROR = 1000
"""Characters of an error that are kept."""
MOST_RESULT = 1_000_000
"""Bytes of a result."""


@dataclass(frozen=True, slots=True)
class RunReport:
    """Report of a run's program on its end. ``is_empty``: nothing is left of what the state names. ``commit`` is what
    it had its template from. ``result`` are its outputs, or what differs."""

    end: RunEnd
    error: str | None = None
    is_empty: bool = False
    commit: str | None = None
    result: Mapping[str, Any] | None = None


def proven_run(services: Services, run_id: str) -> ProviderRun:
    """The run whose token was sent. ``Unauthorized`` when there is none."""
    run = services.store.get(ProviderRun, run_id)
    if run is None:
        raise Unauthorized(REFUSED)
    return run


def begin(services: Services, seals: Seals, run: ProviderRun) -> dict[str, Any]:
    """The task of the run, which is given out once: whoever begins it again, or too late, gets
    ``IllegalTransition``."""
    if run.status not in ("created", "started"):
        raise IllegalTransition(f"The run is {run.status}.")
    state = services.store.get(RunState, run.workspace)
    task = open_sealed(services, seals, run.id, TASK)
    if task is None or state is None or state.run != run.id:
        raise IllegalTransition("The run is over.")
    now = services.now()
    started_run = replace(run, status="begun", begun_at=now, version=run.version + 1)
    is_apply = run.command == APPLY
    if is_apply:
        keep_applied(services, run.workspace, run.id)
    touched = replace(
        state,
        is_touched=state.is_touched or run.makes,
        applied_by=run.id if is_apply else state.applied_by,
        account=run.account if is_apply else state.account,
        version=state.version + 1,
    )
    try:
        services.store.commit(Replace(started_run), Replace(touched), subject_check(run))
    except Conflict:
        raise IllegalTransition("The run has begun already, or what it works for is over.") from None
    lock = state.lock
    unlock = {"unlock": lock.id} if lock is not None and lock.run != run.id else {}
    fixed = {"commit": state.commit} if run.makes and not is_apply and state.commit is not None else {}
    passphrase = passphrase_of(services.token_key, services.tenant, run.workspace)
    facts = {"passphrase": passphrase, "unsure": state.is_unsure, "keep": state.is_applied}
    return {**task, **unlock, **fixed, **facts}


def keep_lines(services: Services, seals: Seals, run: ProviderRun, first: int, lines: Sequence[str]) -> None:
    """Keep lines that the program printed. Values of secrets are hidden here too, whatever it has hidden before.

    ``Unauthorized`` unless the run is under way. Lines of a run whose operation is not kept are dropped.
    """
    check_running(run)
    if not lines:
        return
    hidden = _hiding(services, seals, run, [_one_line(line) for line in lines])
    try:
        append(services, run.operation_id, log_name(run), run.attempt, hidden, first=first)
    except NotFound:
        return


def is_needless(services: Services, run: ProviderRun) -> bool:
    """Whether nobody needs what the run makes: its claim is being deleted or gone, or its environment goes."""
    if run.command != APPLY:
        return False
    if run.subject.startswith(f"{ids.NODE_CLAIM}_"):
        claim = services.store.get(NodeClaim, run.subject)
        return claim is None or claim.deleting
    environment = services.store.get(NodeEnvironment, run.subject)
    return environment is None or environment.removing


def end_of(services: Services, seals: Seals, run: ProviderRun, report: RunReport) -> None:
    """Record how the run ended. Told twice, the first end stays. ``Unauthorized`` for a run that has not begun."""
    if run.status == "ended":
        return
    check_running(run)
    if report.result is not None:
        put_sealed(services, seals, run.id, RESULT, report.result)
    error = _hiding(services, seals, run, [_one_line(report.error)])[0][:MOST_ERROR] if report.error else None
    end_run_record(services, run.id, replace(report, error=error))


def check_running(run: ProviderRun) -> None:
    """``Unauthorized`` unless the run has begun and has not ended: its token is of no use before and after."""
    if run.status != "begun":
        raise Unauthorized(REFUSED)


def log_name(run: ProviderRun) -> str:
    """Name of the run among those of its operation."""
    return f"{run.name}-{run.number}"


def subject_check(run: ProviderRun) -> Check:
    """Condition that the run's attempt still owns the claim, or that the environment is there."""
    if run.subject.startswith(f"{ids.NODE_CLAIM}_"):
        return Check(NodeClaim, run.subject, {"operation_id": run.operation_id, "attempt": run.attempt})
    return Check(NodeEnvironment, run.subject, {"id": run.subject})


@until_written("run changes too often to record its end")
def end_run_record(services: Services, run_id: str, report: RunReport) -> ProviderRun | None:
    """Record how a run ended; the first end stays. The run as it is then; None where there is none.

    Of a run that died, the state is unsure from now on and keeps its lock; after any other end it is sure, and
    unlocked.
    """
    run = services.store.get(ProviderRun, run_id)
    if run is None:
        return None
    if run.status != "ended":
        finished_run = replace(
            run,
            status="ended",
            end=report.end,
            error=report.error,
            ended_at=services.now(),
            has_result=report.result is not None,
            commit=report.commit,
            version=run.version + 1,
        )
        state = services.store.get(RunState, run.workspace)
        changed = _settled(state, run, report) if state is not None else None
        services.store.commit(Replace(finished_run), *([Replace(changed)] if changed is not None else []))
        run = finished_run
    end_run(services, run.operation_id, log_name(run), run.attempt, run.error)
    return run


def _settled(state: RunState, run: ProviderRun, report: RunReport) -> RunState | None:
    """The state after that end of a run; None where it stays as it is."""
    if run.status != "begun":
        return None  # it has done nothing
    commit = (report.commit if run.command == APPLY else None) or state.commit
    if report.end in DIED:
        changed = replace(state, is_unsure=state.is_unsure or run.makes, commit=commit)
    else:
        is_own = state.lock is not None and state.lock.run == run.id
        changed = replace(
            state,
            is_touched=state.is_touched and not report.is_empty,
            is_unsure=state.is_unsure and not run.makes,
            lock=None if is_own else state.lock,
            commit=commit,
            is_applied=not report.is_empty and (state.is_applied or (run.command == APPLY and report.end == "done")),
        )
    return None if changed == state else replace(changed, version=state.version + 1)


def _hiding(services: Services, seals: Seals, run: ProviderRun, lines: Sequence[str]) -> list[str]:
    task = open_sealed(services, seals, run.id, TASK) or {}
    passphrase = passphrase_of(services.token_key, services.tenant, run.workspace)
    secrets = sorted({passphrase, *task.get("secrets", ())}, key=len, reverse=True)
    hidden = list(lines)
    for secret in secrets:
        if len(secret) >= SHORTEST_SECRET:
            hidden = [line.replace(secret, HIDDEN) for line in hidden]
    return [redact(line) for line in hidden]


def _one_line(text: str) -> str:
    """The text as one line: a log has one line for each number."""
    return " ".join(text.splitlines()) if "\n" in text or "\r" in text else text
