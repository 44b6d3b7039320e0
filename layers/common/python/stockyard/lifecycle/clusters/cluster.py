"""The legal moves of a cluster: pure functions from (records, what was seen, now) to a change.

::

    accepting ──> preparing ──> ready ⟲ change        accepting ──> undoing ──> gone
                     │ ▲          │
               failed┘ └resume    │
                 │                │
                 └──> deleting <──┘ <── preparing      deleting ──> gone

A ready cluster stays ``ready`` while an operation changes it; when that fails it is ready and ``Degraded``.
``now`` is RFC 3339 text. Nothing here reads a clock or a store.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stockyard.domain.records import Cluster, Operation, OperationError, TagChange
from stockyard.domain.values.conditions import Condition
from stockyard.domain.values.states import ClusterStatus
from stockyard.errors import IllegalTransition
from stockyard.lifecycle import phases
from stockyard.lifecycle.change import Change, Failure, PhaseEnd, Transition
from stockyard.lifecycle.change_phases import CHANGES
from stockyard.lifecycle.operation import Moves, execution_name, operation_started
from stockyard.lifecycle.procedure import Procedure

STATUSES: dict[ClusterStatus, frozenset[ClusterStatus]] = {
    "accepting": frozenset({"preparing", "undoing"}),
    "undoing": frozenset(),
    "preparing": frozenset({"ready", "failed", "deleting"}),
    "ready": frozenset({"deleting"}),
    "failed": frozenset({"preparing", "deleting"}),
    "deleting": frozenset(),
}
MOST_STALE_KEYS = 400
"""Keys of removed tags that a cluster remembers until they are gone from its cloud: ten times what it can have."""


class ClusterMoves(Moves[Cluster]):
    """Moves of clusters alone, and their part in the moves of every operation."""

    about, noun, announces, current_field = "Cluster", "cluster", True, "phase"
    deleting, gone_condition, leaving_condition = "deleting", phases.DELETED, phases.READY
    leaving_text, gone_text = "The cluster is being deleted.", "The cluster is gone."

    def _move(self, cluster: Cluster, status: ClusterStatus, now: str, **fields: object) -> Cluster:
        if status not in STATUSES[cluster.status]:
            raise IllegalTransition(f"The cluster is {cluster.status}; it cannot become {status}.")
        return self.touch(cluster, now, status=status, **fields)

    def shown_status(self, subject: Cluster) -> str:
        return subject.status

    def apply_phase_end(self, subject: Cluster, end: PhaseEnd, now: str) -> tuple[Cluster, tuple[Transition, ...]]:
        name, condition = end.phase.name, end.phase.condition
        if condition:
            reason = "Skipped" if end.skipped else "Succeeded"
            text = end.message or f"Phase {name} is done."
            subject = self.condition(subject, condition, "True", reason, text, now)
        if end.skipped:
            return subject, (self._noted(subject, "PhaseSkipped", f"Phase {name} was skipped."),)
        return subject, (self._noted(subject, "PhaseDone", f"Phase {name} is done."),)

    def _noted(self, cluster: Cluster, reason: str, message: str) -> Transition:
        return self.transition(cluster.status, cluster.status, reason, message)

    def failed(self, subject: Cluster, failure: Failure, now: str) -> tuple[Cluster, str]:
        error, message = failure.error, failure.message
        if subject.status == "ready":
            changed = self.touch(subject, now, phase=None)
            changed = self.condition(changed, phases.DEGRADED, "True", failure.reason, message, now)
        else:
            changed = self._move(subject, "failed", now, phase=None)
        condition = failure.procedure.phase(error.phase).condition
        if condition:
            changed = self.condition(changed, condition, "False", failure.reason, error.cause, now)
        if subject.status != "ready":
            changed = self.condition(changed, phases.READY, "False", error.error_type, message, now)
        return changed, message

    def leaving(self, subject: Cluster, now: str, **fields: object) -> Cluster:
        return self._move(subject, "deleting", now, **fields)

    def is_leaving(self, subject: Cluster) -> bool:
        return subject.status == "deleting"

    def resumed(self, subject: Cluster, now: str, **fields: object) -> Cluster:
        text = f"Resumed at phase {fields['phase']}."
        if subject.status == "ready":
            subject = self.touch(subject, now, **fields)
            return self.condition(subject, phases.DEGRADED, "Unknown", "Resumed", text, now)
        subject = self._move(subject, "preparing", now, **fields)
        return self.condition(subject, phases.READY, "Unknown", "Resumed", text, now)

    def note_phase(
        self, subject: Cluster, operation: Operation, phase: str, message: str, now: str
    ) -> Change[Cluster] | None:
        """Tell what becomes of each node, too, in a change of a ready cluster: who follows it reads events."""
        change = super().note_phase(subject, operation, phase, message, now)
        if change is None or operation.kind not in CHANGES:
            return change
        return replace(change, transitions=(self._noted(subject, "Progress", f"{phase}: {message}"),))

    # --- moves of clusters only --------------------------------------------------------------------------------------

    def take_back(self, cluster: Cluster, now: str) -> Cluster:
        """An acceptance that is not handed over any more: what it made is removed, then its record."""
        return self._move(cluster, "undoing", now)

    def prepare(self, cluster: Cluster, operation: Operation, procedure: Procedure, now: str) -> Change[Cluster]:
        """An accepted cluster starts its background work."""
        conditions = tuple(
            Condition(name, "Unknown", "Pending", "Not started yet.", now)
            for name in (*procedure.conditions, phases.READY)
        )
        moved = self._move(
            cluster,
            "preparing",
            now,
            operation_id=operation.id,
            execution=execution_name(operation),
            phase=procedure.names[0],
            lease_expires_at=None,
            conditions=conditions,
        )
        accepted = self.transition(None, "preparing", "Accepted", "The cluster is being prepared.")
        return Change(moved, operation, (accepted, operation_started(operation)), workflow=procedure)

    def become_ready(self, cluster: Cluster, operation: Operation, phase: str, now: str) -> Change[Cluster] | None:
        """The last phase of a creation; None when the cluster is ready already."""
        if cluster.status == "ready":
            return None
        cluster = self._move(cluster, "ready", now, phase=None)
        cluster = self.condition(cluster, phases.READY, "True", "Ready", "The cluster is ready.", now)
        transition = self.transition("preparing", "ready", "Ready", "The cluster is ready.")
        return self._success(cluster, operation, phase, transition, now)

    def start_change(
        self, cluster: Cluster, current: Operation | None, operation: Operation, procedure: Procedure, now: str
    ) -> Change[Cluster]:
        """An operation begins to change a ready cluster, which stays ready. ``IllegalTransition`` unless it is ready
        and nothing else works on it."""
        if cluster.status != "ready":
            raise IllegalTransition(f"The cluster is {cluster.status}; only a ready one can be changed.")
        if current is not None and current.status == "running":
            raise IllegalTransition(f"Operation {current.id} is still at work on the cluster.")
        fields = {"phase": procedure.names[0], "execution": execution_name(operation)}
        changed = self.touch(cluster, now, **self._fence(cluster, operation), **fields)
        text = f"Operation {operation.kind} changes the cluster."
        transitions = (self._noted(cluster, "ChangeStarted", text), operation_started(operation))
        return Change(changed, operation, transitions, workflow=procedure)

    def end_change(self, cluster: Cluster, operation: Operation, phase: str, now: str) -> Change[Cluster] | None:
        """The last phase of a change; None when it was recorded before."""
        if operation.status != "running":
            return None
        text = f"Operation {operation.kind} has changed the cluster."
        changed = self.touch(cluster, now, phase=None)
        if changed.nodes_version == changed.kubernetes_version:
            changed = replace(changed, nodes_version="")
        if any(condition.type == phases.DEGRADED for condition in cluster.conditions):
            changed = self.condition(changed, phases.DEGRADED, "False", "Changed", text, now)
        return self._success(changed, operation, phase, self._noted(cluster, "Changed", text), now)

    def cancel(
        self, cluster: Cluster, operation: Operation, procedure: Procedure, actor: str, now: str
    ) -> Change[Cluster]:
        """A person stops a change of a ready cluster. What it has done so far stands; it can be resumed.
        ``IllegalTransition`` where none runs."""
        if operation.kind not in CHANGES or operation.status != "running":
            raise IllegalTransition("No change of the cluster is at work that could be stopped.")
        cause = f"Stopped by {actor}. What it has done so far stands."
        phase = self.current_phase(cluster, operation)
        error = OperationError(procedure.error, phase, cause, procedure.advice, "Cancelled")
        change = self.fail(cluster, operation, Failure(procedure, error, ends="cancelled"), now)
        if change is None:
            raise IllegalTransition("The operation has ended.")
        return change

    def change_tags(self, cluster: Cluster, tags: Mapping[str, str], now: str) -> Cluster:
        """The cluster with other tags, which its cloud is to get; its version stays. Also the same tags count, because
        something may have lost them. ``IllegalTransition`` when too many removed ones are still in the cloud."""
        earlier_keys = cluster.tag_change.stale_keys if cluster.tag_change is not None else ()
        stale_keys = tuple(sorted({*earlier_keys, *cluster.tags} - set(tags)))
        if len(stale_keys) > MOST_STALE_KEYS:
            raise IllegalTransition(
                f"{len(stale_keys)} removed tags would still have to be taken from what stands in the cloud; at most"
                f" {MOST_STALE_KEYS} are remembered. Go on when the condition {phases.TAGS_APPLIED} is True."
            )
        change = TagChange(cluster.version + 1, now, stale_keys)
        changed = replace(cluster, tags=dict(tags), tag_change=change)
        text = "What stands in the cloud gets the tags as soon as the cluster is ready and nothing else works on it."
        return self.condition(changed, phases.TAGS_APPLIED, "Unknown", "Pending", text, now)

    def end_retag(
        self, cluster: Cluster, operation: Operation, change: TagChange | None, message: str, now: str
    ) -> Change[Cluster] | None:
        """All that stands in the cloud carries the tags of that change; None when they were changed again since."""
        if cluster.tag_change != change:
            return None
        tagged = replace(cluster, tag_change=None)
        tagged = self.condition(tagged, phases.TAGS_APPLIED, "True", "Succeeded", message, now)
        return self.end_change(tagged, operation, operation.phases[-1].name, now)


MOVES = ClusterMoves()
