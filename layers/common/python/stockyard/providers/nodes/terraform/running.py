"""One step of a run, for the node source: created, given to a machine, looked at, and its end read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from stockyard.domain.records import CloudAccount, NodeProvider
from stockyard.domain.run_records import ProviderRun, RunAccount
from stockyard.domain.values import times
from stockyard.errors import RunFailed, RunInterrupted, RunKilled, RunLost
from stockyard.ports import Outcome
from stockyard.ports.runs import NewRun, Runner, RunnerAccount, Runs, RunStart
from stockyard.providers.nodes.terraform.program import program

END_SECONDS = 600
"""Time that a program has for its end after its time-out, and again for the removal of what a failed apply made."""
STARTING_SECONDS = 900
"""Time for a machine to begin the program: builds queue, and download OpenTofu."""
SPARE_SECONDS = 900
"""Time after which the machine ends whatever has not ended by then."""
SHORTEST_WAIT, LONGEST_WAIT = 3, 60
_ERRORS = {"failed": RunFailed, "interrupted": RunInterrupted, "killed": RunKilled, "lost": RunLost}
APPLY_MINUTES, DESTROY_MINUTES, PLAN_MINUTES = 3, 3, 2
"""Usual times of a run, with those for its machine to start and to fetch OpenTofu: an estimate for plans."""
ERRORS = {end: error.__name__ for end, error in _ERRORS.items()}
"""Names of the errors by the ends of runs."""
MOST_LOST = 3
"""Runs that may die in a row before the work fails."""


@dataclass(frozen=True, slots=True)
class RunWork:
    """A run that is to be carried out. ``task`` is made when the run is created; None: as was applied last."""

    new: NewRun
    timeout_seconds: int
    task: Callable[[], Mapping[str, Any]] | None
    secret_variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def limit_seconds(self) -> int:
        """Time until its machine is ended."""
        return self.timeout_seconds + 2 * END_SECONDS + SPARE_SECONDS


@dataclass(frozen=True, slots=True)
class Running:
    """Runs of a tenant, and the machines that carry them out."""

    runs: Runs
    runner: Runner
    runner_account: Callable[[RunAccount | None], RunnerAccount]
    """Account and region of a run with that account on record; None: as the provider's document says now."""
    now: datetime

    def step(self, work: RunWork) -> ProviderRun | Outcome:
        """The run of the work once it has ended; until then what to wait for. A run that died is followed by another,
        a few times, since nobody knows what it had made."""
        current = self.runs.current(work.new.workspace)
        if current is not None and current.status != "ended":
            current = self._looked_at(current, work)
            if current.status != "ended":
                return self._wait(current)
        is_own = current is not None and _is_of(current, work.new)
        if current is not None and is_own and (current.end != "lost" or current.retries + 1 >= MOST_LOST):
            return current
        return self._wait(self._started(self._created(work), work))

    def anew(self, work: RunWork, seconds: int, commit: str | None = None) -> ProviderRun | Outcome:
        """As ``step``, for a run of any operation that is of use while it is not older than so many seconds. ``commit``
        is the one that its template is to be of; None for any."""
        current = self.runs.current(work.new.workspace)
        if current is not None and current.status != "ended":
            return self.step(replace(work, new=_as_current(work.new, current)))
        is_new = current is not None and (self.now - times.from_text(current.created_at)).total_seconds() <= seconds
        is_fit = current is not None and (commit is None or current.commit in (None, commit))
        if current is not None and is_new and is_fit and current.command == work.new.command:
            return current
        return self._wait(self._started(self._created(work), work))

    def end_others(self, workspace: str) -> Outcome | None:
        """See to it that no run works on the state any more: what to wait for, None when none does. One that has not
        begun never will."""
        current = self.runs.current(workspace)
        if current is None or current.status == "ended":
            return None
        if current.status == "begun":
            current = self._looked_at(current, None)
        else:
            current = self.runs.lost(current, "The run was not needed any more before it began.")
            if current.status == "ended" and current.vendor_id is not None:
                self.runner.stop(self.runner_account(current.account), current.vendor_id)
        return None if current.status == "ended" else self._wait(current)

    def _created(self, work: RunWork) -> ProviderRun:
        """Create the run. What was made in an account is compared and removed there."""
        state = self.runs.state(work.new.workspace)
        target = self.runner_account(
            state.account if state is not None and (state.is_touched or state.is_unsure) else None
        )
        account = RunAccount(target.tenant, target.account.id, target.region)
        task = work.task() if work.task is not None else None
        return self.runs.create(replace(work.new, task=task, account=account))

    def _started(self, run: ProviderRun, work: RunWork | None) -> ProviderRun:
        """Give the run to a machine, unless one has it."""
        if work is None or run.vendor_id is not None or run.status == "ended":
            return run
        variables = {"STOCKYARD_RUN_URL": self.runs.url(run), "STOCKYARD_RUN_TOKEN": self.runs.token(run)}
        start = RunStart(run.id, program(), variables, work.secret_variables, work.limit_seconds)
        return self.runs.started(run, self.runner.start(self.runner_account(run.account), start))

    def _looked_at(self, run: ProviderRun, work: RunWork | None) -> ProviderRun:
        run = self._started(run, work)
        if run.vendor_id is None or run.status == "ended":
            return run
        target = self.runner_account(run.account)
        state = self.runner.state(target, run.vendor_id)
        if state.phase != "ended":
            return run
        reason = state.reason or "Its machine ended."
        words = " ".join(self.runner.log(target, run.vendor_id)[-3:]) if run.status != "begun" else ""
        return self.runs.lost(run, f"The run ended without telling how. {reason} {words}".strip())

    def _wait(self, run: ProviderRun) -> Outcome:
        age = (self.now - times.from_text(run.created_at)).total_seconds()
        wait = int(min(LONGEST_WAIT, max(SHORTEST_WAIT, age // 6)))
        words = {"created": "waits for a machine", "started": "waits to begin"}.get(run.status, "is under way")
        return Outcome(False, f"The run {run.name}-{run.number} {words}.", wait)


def check_end(run: ProviderRun) -> None:
    """Raise ``RunFailed``, or the leaf of it that says how the run ended, unless it is done."""
    if run.end is not None and run.end != "done":
        text = f"{run.name}-{run.number}: {run.error or 'The run failed.'}"
        hint = f"stockyard logs {run.operation_id} shows what it printed."
        raise _ERRORS[run.end](text, code=run.end, hint=hint)


def region_of(provider: NodeProvider, account: CloudAccount, default: str) -> str:
    """Region in which the provider's runs are carried out."""
    runner = (provider.spec.get(provider.kind) or {}).get("runner") or {}
    return str(runner.get("region") or account.attributes.get("region") or default)


def _as_current(new: NewRun, run: ProviderRun) -> NewRun:
    return replace(new, operation_id=run.operation_id, attempt=run.attempt, name=run.name, command=run.command)


def _is_of(run: ProviderRun, new: NewRun) -> bool:
    own = (new.operation_id, new.attempt, new.name, new.command)
    return (run.operation_id, run.attempt, run.name, run.command) == own
