"""Life of a resource: brought to what the stack wants, and removed. Each call takes one step, and may be repeated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from stockyard_stack_resources.api import Api, Reply
from stockyard_stack_resources.documents import differences, is_shown, merge_patch, still_to_say
from stockyard_stack_resources.errors import Busy, Refused, StackResourceError
from stockyard_stack_resources.identity import Identity
from stockyard_stack_resources.kinds import KINDS, Kind, Record
from stockyard_stack_resources.progress import advance
from stockyard_stack_resources.requests import Change, ReadSecret, Target

SETTLING = timedelta(seconds=100)
"""How long a deletion that finds nothing waits: a creation that has looked whether it is awaited may be under way, with
a secret, a token and a request before it, of 20 seconds at most each, and as long in the API."""
IN_USE = timedelta(minutes=10)
"""How long a deletion waits for what still uses the resource."""


@dataclass(frozen=True, slots=True)
class Life:
    """Steps by an API. ``read_secret`` reads secrets of fields, ``now`` is the time in UTC."""

    api: Api
    read_secret: ReadSecret
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def bring(self, change: Change) -> Mapping[str, Any] | None:
        """One step towards what the stack wants. Its outputs when it is reached, None before that."""
        left_over = change.left_over
        if left_over is not None and not self.remove(left_over.identity, left_over.kind, change.since):
            return None
        record = self._creation(change) if change.makes else self._changed(change)
        if record is None:
            return None
        old = change.old.document if change.old is not None and not change.makes else None
        touched = None if old is None else tuple(differences(change.target.document, old))
        return advance(self.api, change.target.kind, record, touched)

    def present(self, change: Change) -> Mapping[str, Any] | None:
        """Outputs of the resource as it is now, ready or not; None where there is none yet."""
        record = self.api.get(change.target.identity.path)
        return None if record is None else dict(change.target.kind.outputs(record.body))

    def _creation(self, change: Change) -> Record | None:
        """The resource of a creation. A repeated one is answered as the first one was."""
        target = change.target
        body = target.kind.body(target.complete(self.read_secret), target.identity.token, change.replaces)
        try:
            reply = self.api.call("POST", target.kind.home(target.document), body, key=change.key)
        except Refused as refusal:
            if refusal.status not in (409, 422) or self.api.get(target.identity.path) is None:
                raise
            return self._taken_over(change, refusal)
        record = self._current(target)
        if record is None:
            raise StackResourceError(f"{target.identity.path} was deleted while the stack made it")
        if record.body.get("id") != reply.body.get("id"):
            raise StackResourceError(f"{target.identity.path} was replaced by somebody while the stack made it")
        return dict(record.body)

    def _taken_over(self, change: Change, refusal: Refused) -> Record | None:
        """The resource of that name, which was there before this request."""
        record = self._current(change.target)
        if record is None:
            return None
        mark = change.target.kind.mark.read(record.body)
        if change.target.identity.owns(mark) or (mark is None and change.target.adopt):
            return self._patched(change, record)
        if mark is None:
            raise StackResourceError(f"{refusal} Set adopt to take over what is there.") from refusal
        raise StackResourceError(
            f"{refusal} It is of another stack or resource; where this one shall be replaced, it needs another name, or"
            " none of its own."
        ) from refusal

    def _changed(self, change: Change) -> Record | None:
        record = self._current(change.target)
        if record is None:
            raise StackResourceError(f"{change.target.identity.path} is gone; delete it from the stack to make it anew")
        mark = change.target.kind.mark.read(record.body)
        if not change.target.identity.owns(mark) and not (mark is None and change.target.adopt):
            raise StackResourceError(f"{change.target.identity.path} is not of this stack any more")
        return self._patched(change, record)

    def _patched(self, change: Change, record: Reply) -> Record:
        """The record once it says what the stack wants."""
        target, kind = change.target, change.target.kind
        old = change.old.document if change.old is not None else {}
        if old and (refused := [field for field in kind.once if target.document.get(field) != old.get(field)]):
            raise StackResourceError(f"{', '.join(sorted(refused))} cannot be changed; a new {kind.name} can have it")
        whole = target.complete(self.read_secret) if change.sends_secrets else dict(target.document)
        if kind.mark.read(record.body) is not None:
            marks = target.identity.token, kind.mark.replaced(record.body)
            whole, old = kind.mark.put(whole, *marks), kind.mark.put(old, *marks)
        unsaid = {"name", *(field for field in (*kind.fixed, *kind.once) if "." not in field)}
        unsaid |= {kind.parent} if kind.parent else set()
        new = {key: value for key, value in whole.items() if key not in unsaid}
        if kind.by_version:
            return self._with_version(target, new, record)
        before = {key: value for key, value in old.items() if key not in unsaid}
        patch = still_to_say(merge_patch(new, before), before, record.body, kind.unset)
        if not patch:
            return dict(record.body)
        reply = self.api.call("PATCH", target.identity.path, patch, version=record.headers.get("etag"))
        return dict(reply.body)

    def _with_version(self, target: Target, new: Mapping[str, Any], record: Reply) -> Record:
        """The profile once it has the version; versions that it has stay as they are."""
        numbers = {version["version"] for version in record.body["versions"]}
        if new["version"] in numbers:
            if new["version"] == record.body["version"] and new["description"] != record.body["description"]:
                raise StackResourceError("description: it changes with a further version only")
            view = self.api.call("GET", f"{target.identity.path}?version={new['version']}").body
            compared = {key: value for key, value in new.items() if key != "description"}
            if is_shown(compared, view):
                return dict(view)
            raise StackResourceError(f"version {new['version']} is there and says something else; give another number")
        body = {key: value for key, value in new.items() if key in ("version", "variables", "packs", "description")}
        reply = self.api.call("PUT", target.identity.path, body, version=record.headers.get("etag"))
        return dict(reply.body)

    def _current(self, target: Target) -> Reply | None:
        return self.api.get(target.identity.path)

    def remove(self, identity: Identity, kind: Kind, since: datetime) -> bool:
        """One step of a deletion that began at ``since``; whether it has ended. What is not ours stays."""
        record = self.api.get(identity.path)
        if record is None:
            return self.now() - since >= SETTLING
        if not identity.owns(kind.mark.read(record.body)):
            return True
        if record.body.get("status") == "deleting" or record.body.get("deleting") is True:
            return self._check_deletion(record.body)
        try:
            self.api.call("DELETE", identity.path)
        except Refused as refusal:
            if refusal.status == 404:
                return False
            if refusal.status != 409 or self.now() - since > IN_USE:
                raise
            return False
        return self.api.get(identity.path) is None

    def remove_replacements(self, identity: Identity, kind: Kind, since: datetime) -> bool:
        """One step of the removal of what was made in the place of a resource that still was the stack's when the stack
        was deleted; whether there is none. Nobody has ever told CloudFormation of it."""
        home = identity.path.rpartition("/")[0]
        for record in self.api.every(home):
            if kind.mark.replaced(record) == identity.token:
                self.remove(Identity(f"{home}/{record['name']}", str(kind.mark.read(record))), kind, since)
                return False
        return True

    def _check_deletion(self, record: Record) -> bool:
        operation_id = record.get("operation_id")
        operation = self.api.get(f"operations/{operation_id}") if operation_id else None
        if operation is not None and operation.body["status"] == "failed":
            error = operation.body.get("error") or {}
            raise StackResourceError(f"the deletion has failed: {error.get('cause')} {error.get('hint') or ''}".strip())
        return False


def kind_of_path(path: str) -> Kind:
    """The kind of what is at a path."""
    parts = path.split("/")
    if len(parts) == 4 and parts[2] == "pools":
        return KINDS["NodePool"]
    kinds = [kind for kind in KINDS.values() if kind.collection == parts[0]]
    if len(parts) != 2 or not kinds:
        raise StackResourceError(f"{path} is no resource of a stack")
    return kinds[0]


__all__ = ["Busy", "Life", "kind_of_path"]
