"""Runs of a tenant on record: ``ports.runs.Runs``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from stockyard.domain.operation_records import OperationRun
from stockyard.domain.records import NodeClaim
from stockyard.domain.run_records import ProviderRun, RunState
from stockyard.domain.values import ids
from stockyard.errors import Conflict, Fenced, NodeCouldNotBeProvisioned
from stockyard.operations.engine.advance import until_written
from stockyard.operations.engine.run_logs import begin_run
from stockyard.operations.runs.objects import (
    RESULT,
    TASK,
    applied_name,
    open_applied,
    open_sealed,
    put_sealed,
    state_name,
)
from stockyard.operations.runs.program import RunReport, end_run_record, log_name, subject_check
from stockyard.operations.runs.tokens import token_of
from stockyard.operations.services import Services
from stockyard.ports import Create, Remove, Replace
from stockyard.ports.runs import NewRun
from stockyard.ports.sites import Seals


@dataclass(frozen=True, slots=True)
class StoreRuns:
    """Runs on the tenant's records. ``seals`` seals tasks and opens results."""

    services: Services
    seals: Seals

    def state(self, workspace: str) -> RunState | None:
        """See ``ports.runs.Runs.state``."""
        return self.services.store.get(RunState, workspace)

    def current(self, workspace: str) -> ProviderRun | None:
        """See ``ports.runs.Runs.current``."""
        state = self.state(workspace)
        return self.services.store.get(ProviderRun, state.run) if state is not None and state.run is not None else None

    @until_written("state has too many runs at once")
    def create(self, new: NewRun) -> ProviderRun:
        """See ``ports.runs.Runs.create``. The task is sealed first: what is on record has one."""
        state = self.state(new.workspace)
        current = self.current(new.workspace)
        if current is not None and current.status != "ended":
            return current
        number = state.runs + 1 if state is not None else 1
        run = ProviderRun(
            id=ids.derive(ids.RUN, new.subject, new.workspace, str(number)),
            subject=new.subject,
            workspace=new.workspace,
            operation_id=new.operation_id,
            attempt=new.attempt,
            name=new.name,
            number=number,
            command=new.command,
            makes=new.makes,
            phase=new.phase,
            created_at=self.services.now(),
            fingerprint=new.fingerprint,
            account=new.account,
            retries=current.retries + 1 if current is not None and _is_retry(current, new) else 0,
        )
        task = {**self._task(new, state), "command": new.command}
        put_sealed(self.services, self.seals, run.id, TASK, task)
        state_write = (
            Create(RunState(new.workspace, self.services.now(), run.id, 1))
            if state is None
            else Replace(replace(state, run=run.id, runs=number, version=state.version + 1))
        )
        try:
            self.services.store.commit(Create(run), state_write, subject_check(run))
        except Conflict:
            self._check_fence(run)
            raise
        begin_run(self.services, run.operation_id, OperationRun(log_name(run), run.attempt, run.phase, run.created_at))
        return run

    def started(self, run: ProviderRun, vendor_id: str) -> ProviderRun:
        """See ``ports.runs.Runs.started``. Its program may have begun, and ended, by now."""
        return self._with_machine(run.id, vendor_id) or run

    def lost(self, run: ProviderRun, reason: str) -> ProviderRun:
        """See ``ports.runs.Runs.lost``."""
        return end_run_record(self.services, run.id, RunReport("lost", reason)) or run

    def result(self, run: ProviderRun) -> Mapping[str, Any]:
        """See ``ports.runs.Runs.result``."""
        return (open_sealed(self.services, self.seals, run.id, RESULT) or {}) if run.has_result else {}

    def applied(self, workspace: str) -> Mapping[str, Any] | None:
        """See ``ports.runs.Runs.applied``."""
        state = self.state(workspace)
        return open_applied(self.services, self.seals, state) if state is not None else None

    def url(self, run: ProviderRun) -> str:
        """See ``ports.runs.Runs.url``."""
        return f"{self.services.settings.api_url.rstrip('/')}/v1/runs/{run.id}"

    def token(self, run: ProviderRun) -> str:
        """See ``ports.runs.Runs.token``."""
        return token_of(self.services.token_key, self.services.tenant, run.id)

    def forget(self, workspace: str) -> None:
        """See ``ports.runs.Runs.forget``. The object goes first: no record is left whose object nobody finds."""
        state = self.state(workspace)
        if state is None:
            return
        self.services.objects.delete(applied_name(workspace))
        for run_id in {state.run, state.kept_by} - {None}:
            self.services.objects.delete(state_name(workspace, str(run_id)))
        self.services.store.commit(Remove(RunState, workspace))

    def _task(self, new: NewRun, state: RunState | None) -> Mapping[str, Any]:
        if new.task is not None:
            return {**new.task, "secrets": sorted(new.secrets)}
        applied = open_applied(self.services, self.seals, state) if state is not None else None
        if applied is None:
            raise NodeCouldNotBeProvisioned("It is not known any more what was applied.")
        return applied

    @until_written("run changes too often to record its machine")
    def _with_machine(self, run_id: str, vendor_id: str) -> ProviderRun | None:
        run = self.services.store.get(ProviderRun, run_id)
        if run is None or run.vendor_id is not None:
            return run
        status = "started" if run.status == "created" else run.status
        changed = replace(run, status=status, vendor_id=vendor_id, version=run.version + 1)
        self.services.store.commit(Replace(changed))
        return changed

    def _check_fence(self, run: ProviderRun) -> None:
        claim = self.services.store.get(NodeClaim, run.subject)
        is_claim = run.subject.startswith(f"{ids.NODE_CLAIM}_")
        if is_claim and (claim is None or (claim.operation_id, claim.attempt) != (run.operation_id, run.attempt)):
            raise Fenced("Another operation or attempt owns the claim now.")


def _is_retry(lost: ProviderRun, new: NewRun) -> bool:
    own = (new.operation_id, new.attempt, new.name, new.command)
    return lost.end == "lost" and (lost.operation_id, lost.attempt, lost.name, lost.command) == own
