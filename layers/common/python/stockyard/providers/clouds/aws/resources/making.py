"""Making and unmaking by the ledger: intent first, then a look at the world, then at most one creating call.

A crash at any point is found again: a line that is only ``intended`` is looked up by its tags or name before anything
is made a second time, and what the cloud may still hide is waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from stockyard import side_by_side
from stockyard.domain.records import Resource
from stockyard.domain.values.times import from_text, to_text
from stockyard.errors import (
    NotYetVisible,
    PermissionDenied,
    VendorConflict,
    VendorError,
    VendorRefused,
    VendorTimeout,
    VendorUnavailable,
)
from stockyard.ports import Ledger, Outcome
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.errors import DUPLICATE, IN_USE, REPEATED
from stockyard.providers.clouds.aws.kinds.base import Kind, State, TaggedThing

Create = Callable[[Resource, dict[str, str]], str]
"""Makes the thing of a ledger line with these tags and returns its vendor id."""


@dataclass(frozen=True, slots=True)
class PresentResource:
    """A thing that is there. ``pending``: it cannot be used yet."""

    vendor_id: str
    pending: bool


@dataclass(frozen=True, slots=True)
class DesiredResource:
    """Description of a wanted thing. ``identity``: the name is unique in AWS, so that it is looked up by name."""

    kind: Kind
    key: str
    name: str
    create: Create
    configure: Callable[[str], None] | None = None
    detail: Mapping[str, object] | None = None
    extra_tags: Mapping[str, str] | None = None
    identity: bool = False
    beside: Callable[[], None] | None = None
    """What is read while the intent is written; it raises nothing."""


@dataclass(frozen=True, slots=True)
class Reconciler:
    """One phase of one owner's work.

    ``visibility_seconds`` is how long the cloud may hide what was just made; ``kinds`` are all that the ledger may
    name, in an order in which deletion succeeds. ``lost`` is what a person does when the cloud has lost a part.
    """

    calls: Calls
    ledger: Ledger
    owner: tags.Owner
    now: datetime
    visibility_seconds: int
    kinds: Mapping[str, Kind]
    lost: str

    def name(self, suffix: str) -> str:
        """``{prefix}-{client_id}-{suffix}``, as the reference names things."""
        return f"{self.owner.prefix}-{self.owner.client_id}-{suffix}"

    def recent(self, moment: str | None) -> bool:
        """Whether the cloud may still hide what was made at ``moment``."""
        if moment is None:
            return False
        return (self.now - from_text(moment)).total_seconds() < self.visibility_seconds

    def hiding(self) -> bool:
        """Whether any line of the owner is so new that a "not found" proves nothing."""
        return any(self.recent(line.made_at or line.intended_at) for line in self.ledger.lines())

    # --- making -----------------------------------------------------------------------------------------------------

    def want(self, desired: DesiredResource) -> PresentResource:
        """Bring one thing about, or find it. Raises ``NotYetVisible`` when it may be there but hidden."""
        return self.want_by(desired, self.ledger.find(desired.kind.name, desired.key))

    def want_by(self, desired: DesiredResource, line: Resource | None) -> PresentResource:
        """As ``want``, by the thing's line as it has just been found."""
        state = State.PRESENT
        if line is not None and line.state == "made":
            state = desired.kind.state(self.calls, line.vendor_id)
            if state in (State.LEAVING, State.FAILED):
                raise VendorRefused(f"{desired.kind.name} {line.vendor_id} is {state.value}", hint=self.lost)
            if state is State.ABSENT and not self.recent(line.made_at):
                self.ledger.gone(line)
                line = None
        if line is None or line.state != "made":
            line = self._adopted(desired, line) or self._created(desired, line)
            state = desired.kind.state(self.calls, line.vendor_id)
        if desired.configure is not None and not line.detail.get("configured"):
            desired.configure(line.vendor_id)
            line = self.ledger.made(line, line.vendor_id, {**line.detail, "configured": True})
        return PresentResource(line.vendor_id, state is State.PENDING)

    def _adopted(self, desired: DesiredResource, line: Resource | None) -> Resource | None:
        """The line, made, when an earlier try has made the thing and could not say so."""
        if line is None:
            return None
        vendor_id = self._owned_id(desired, line)
        if vendor_id:
            return self.ledger.made(line, vendor_id, line.detail)
        if not desired.kind.repeatable and self.recent(line.intended_at):
            raise NotYetVisible(f"{desired.kind.name} {desired.key} may have been made and is not shown yet")
        return None

    def _owned_id(self, desired: DesiredResource, line: Resource) -> str:
        line_tags = tags.of_key(self.owner, line.kind, line.key)
        matches = desired.kind.search(self.calls, line_tags, desired.name if desired.identity else None)
        owned = sorted(item.vendor_id for item in matches if tags.carries(item.tags, line_tags))
        return owned[0] if owned else ""

    def _created(self, desired: DesiredResource, before: Resource | None) -> Resource:
        detail = {**(desired.detail or {}), "name": desired.name}
        if before is not None and not desired.kind.repeatable:
            detail = {**detail, **before.detail}
        # Also after an earlier try: a new intent starts a new wait, should this try's answer be lost too.
        line = self._intended(desired, detail)
        if line.state == "made":
            return line
        try:
            # The first try's moment: a repeated call must not differ, or its client token is refused.
            since = str(line.detail.get("since") or line.intended_at)
            marks = tags.full(self.owner, line.kind, line.key, desired.name, since) | dict(desired.extra_tags or {})
            vendor_id = desired.create(line, marks)
        except (VendorTimeout, VendorUnavailable):
            raise  # It may have happened: the line stays intended.
        except VendorError as error:
            vendor_id = self._despite(error, desired, line)
        return self.ledger.made(line, vendor_id, line.detail)

    def _intended(self, desired: DesiredResource, detail: Mapping[str, object]) -> Resource:
        intend = partial(self.ledger.intend, desired.kind.name, desired.key, detail)
        if desired.beside is None:
            return intend()
        works: Sequence[Callable[[], Any]] = (intend, desired.beside)
        line: Resource = side_by_side.results(works)[0]
        return line

    def _despite(self, error: VendorError, desired: DesiredResource, line: Resource) -> str:
        """Find the thing that is there under the name already, if it is ours. Otherwise nothing was made, and the line
        says so."""
        if DUPLICATE.fullmatch(error.code) or error.code == IN_USE:
            vendor_id = self._owned_id(desired, line)
            if vendor_id:
                return vendor_id
            if self.recent(self._taken_at(desired, line)):
                raise NotYetVisible(f"{desired.name} exists and is not shown yet", code=error.code) from error
        if error.code == REPEATED:
            raise error  # The thing is there: the line stays intended until it is shown, or a removal finds it.
        self.ledger.gone(line)
        if error.code == IN_USE and desired.identity and desired.kind.search(self.calls, {}, desired.name):
            hint = "Something that is not ours has the same name; rename or remove it."
            raise VendorRefused(error.detail, code=error.code, hint=hint) from error
        raise error

    def _taken_at(self, desired: DesiredResource, line: Resource) -> str:
        """Moment when the cloud first said that the name is taken. What is ours is shown soon after, else it is not
        ours."""
        taken_at = line.detail.get("taken_at")
        if taken_at is None:
            taken_at = to_text(self.now)
            self.ledger.intend(desired.kind.name, desired.key, {"taken_at": taken_at})
        return str(taken_at)

    # --- unmaking ---------------------------------------------------------------------------------------------------

    def unmake(self, phase: str | None = None, kept_kinds: Collection[str] = ()) -> Outcome:
        """Remove the lines of a phase, or all, in the reverse order of making, as far as it goes now. Those of
        ``kept_kinds`` stay."""
        # By kind, since lines of one moment have no order on the ledger; within a kind the younger first, which may
        # refer to an older one.
        order = list(self.kinds)
        younger_first = [line for line in self.ledger.lines(phase)[::-1] if line.kind not in kept_kinds]
        lines = sorted(younger_first, key=lambda line: order.index(line.kind))
        for index, line in enumerate(lines):
            waiting = self.remove(line)
            if waiting:
                remaining = tuple(f"{item.kind} {item.vendor_id or item.key}" for item in lines[index:])
                return Outcome(done=False, message=waiting, remaining=remaining)
        return Outcome(done=True)

    def remove(self, line: Resource) -> str | None:
        """Remove the thing of one line. None when it is gone for sure, else what is waited for."""
        kind = self.kinds[line.kind]
        if kind.borrowed:
            self.ledger.gone(line)
            return None
        line_tags = tags.of_key(self.owner, line.kind, line.key)
        named = str(line.detail.get("name") or "") if kind.named else ""
        matches = self._matches(line, line_tags, named or None)
        # Both: what the line names, and what carries its tags; a thing of another owner with our name is neither.
        ids = {item.vendor_id for item in matches if tags.carries(item.tags, line_tags)}
        if line.state == "made":
            ids.add(line.vendor_id)
        for vendor_id in sorted(ids):
            waiting = self._deleted(kind, vendor_id, self.recent(line.made_at or line.intended_at))
            if waiting:
                return waiting
        if line.state != "made" and not ids and self.recent(line.intended_at):
            return f"{line.kind} {line.key} may have been made and is not shown yet"
        if line.state == "made" and not matches and self.recent(line.made_at):
            return f"{line.kind} {line.vendor_id} is new, its deletion is confirmed in a moment"
        self.ledger.gone(line)
        return None

    def _matches(self, line: Resource, line_tags: Mapping[str, str], name: str | None) -> Sequence[TaggedThing]:
        """The things that carry a line's tags. None for a line that was never made, of a ``later`` kind that our role
        may not look at: with that role nothing was made."""
        kind = self.kinds[line.kind]
        try:
            return kind.search(self.calls, line_tags, name)
        except PermissionDenied:
            if line.state == "made" or not kind.later:
                raise
            return ()

    def _deleted(self, kind: Kind, vendor_id: str, recent: bool) -> str | None:
        state = kind.state(self.calls, vendor_id)
        if state is State.ABSENT and not recent:
            return None
        if state is not State.LEAVING:
            try:
                # Also when it is not shown: what was just made may be hidden, and deleting an absent thing is fine.
                kind.delete(self.calls, vendor_id)
            except VendorConflict as error:
                return f"{kind.name} {vendor_id}: {error.detail}"
            except PermissionDenied:
                # Our right hangs on the thing's tags, and AWS knows none of what is gone, or so new that it is hidden.
                if kind.state(self.calls, vendor_id) is not State.ABSENT:
                    raise
        state = kind.state(self.calls, vendor_id)
        return None if state is State.ABSENT else f"{kind.name} {vendor_id} is being deleted"
