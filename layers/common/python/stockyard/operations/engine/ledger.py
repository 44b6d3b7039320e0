"""The ledger of one phase of one cluster or claim, in the store: intent before the call, result behind it (law 3)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from stockyard.domain.records import Cluster, NodeClaim, NodeEnvironment, Resource
from stockyard.domain.values.frozen import dataclass
from stockyard.errors import Conflict, Fenced, NotYetVisible
from stockyard.operations.listing import every
from stockyard.operations.services import Services
from stockyard.ports import Check, Create, Replace

SINCE = "since"
"""In a line's detail: the moment of the first try with the line's token; ``intended_at`` is that of the last."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of the resources, and the attempt for which they are made. ``region`` and ``account_id`` say where they
    stand."""

    id: str
    cluster_id: str
    generation: int
    attempt: int
    region: str
    account_id: int
    guard: Check
    """What must hold for every new intent, checked in its transaction: the fence."""
    passing: tuple[Check, ...] = ()
    """What must hold besides, and will hold again: until then the intent has to wait."""

    @classmethod
    def of_cluster(cls, cluster: Cluster, operation_id: str, attempt: int) -> Owner:
        """A cluster, while it belongs to an attempt of an operation."""
        guard = Check(Cluster, cluster.id, {"operation_id": operation_id, "attempt": attempt})
        location = (str(cluster.settings.get("region_name", "")), cluster.cloud_account_id)
        return cls(cluster.id, cluster.id, cluster.generation, attempt, *location, guard)

    @classmethod
    def of_claim(cls, claim: NodeClaim, operation_id: str, attempt: int, region: str, account_id: int) -> Owner:
        """A claim, while it belongs to an attempt of an operation."""
        guard = Check(NodeClaim, claim.id, {"operation_id": operation_id, "attempt": attempt})
        return cls(claim.id, claim.cluster_id, claim.generation, attempt, region, account_id, guard)

    @classmethod
    def of_environment(cls, environment: NodeEnvironment, region: str, account_id: int) -> Owner:
        """An environment, while its cluster is ready and it is not being removed: what a removal finds is then all
        there is."""
        guard = Check(Cluster, environment.cluster_id, {"status": "ready"})
        stays = Check(NodeEnvironment, environment.id, {"removing": False})
        return cls(environment.id, environment.cluster_id, 1, 1, region, account_id, guard, (stays,))

    def token(self, kind: str, key: str) -> str:
        """The client token of a creation: 32 hex digits, the same on every try of one attempt, another on the next."""
        text = f"{self.id}/{self.generation}/{self.attempt}/{kind}/{key}"
        return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class StoreLedger:
    """``ports.Ledger`` on a store. Every new intent checks the fence in the same transaction."""

    services: Services
    owner: Owner
    phase: str
    _other_lines: list[list[Resource]] = field(default_factory=list, init=False, repr=False, compare=False)
    """The lines of the other phases, once they have been read."""
    _own_lines: dict[str, Resource | None] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Lines of this phase by id as they were found, None where there is none: the next intent of one starts from that,
    and is refused where somebody was faster."""

    def _id(self, kind: str, key: str) -> str:
        return f"{self.owner.id}/{self.phase}/{kind}/{key}"

    def intend(self, kind: str, key: str, detail: Mapping[str, Any] | None = None) -> Resource:
        """See ``ports.Ledger.intend``."""
        name = self._id(kind, key)
        old = self._own_lines.pop(name) if name in self._own_lines else self.services.store.get(Resource, name)
        if old is not None and old.state == "made":
            return old
        token, now = self.owner.token(kind, key), self.services.now()
        again = old if old is not None and old.token == token else None
        # A call that repeats a token must repeat its parameters, and the first moment is one of them (a tag).
        since = str(again.detail.get(SINCE) or again.intended_at) if again else now
        earlier_detail = again.detail if again is not None and again.state == "intended" else {}
        line = Resource(
            id=name,
            cluster_id=self.owner.cluster_id,
            phase=self.phase,
            kind=kind,
            key=key,
            token=token,
            state="intended",
            region=self.owner.region,
            account_id=self.owner.account_id,
            intended_at=now,
            detail={**(detail or {}), **earlier_detail, SINCE: since},
            version=old.version + 1 if old else 1,
        )
        try:
            self.services.store.commit(self.owner.guard, *self.owner.passing, Replace(line) if old else Create(line))
        except Fenced as fenced:
            if fenced.index in range(1, 1 + len(self.owner.passing)):
                raise NotYetVisible(f"{kind} {key} has to wait: what it is part of is being removed") from fenced
            raise
        except Conflict as conflict:
            if conflict.index == 0:
                raise Fenced("Another operation or attempt owns it now.") from conflict
            # Two workers of one attempt: the other one's call comes first, and this one looks for it the next time.
            raise NotYetVisible(f"{kind} {key} is being made by another worker") from conflict
        return line

    def made(self, resource: Resource, vendor_id: str, detail: Mapping[str, Any] | None = None) -> Resource:
        """See ``ports.Ledger.made``. Not fenced: what exists must be known, whoever owns the cluster."""
        self._own_lines.pop(resource.id, None)
        line = replace(
            resource,
            state="made",
            vendor_id=vendor_id,
            made_at=self.services.now(),
            detail={**resource.detail, **(detail or {})},
            version=resource.version + 1,
        )
        try:
            self.services.store.commit(Replace(line))
        except Conflict:
            stored = self.services.store.get(Resource, resource.id)
            if stored is None or stored.vendor_id != vendor_id:
                raise
            return stored
        return line

    def gone(self, resource: Resource) -> None:
        """See ``ports.Ledger.gone``."""
        self._own_lines.pop(resource.id, None)
        stored = self.services.store.get(Resource, resource.id)
        if stored is not None and stored.state != "gone":
            line = replace(stored, state="gone", gone_at=self.services.now(), version=stored.version + 1)
            self.services.store.commit(Replace(line))

    def find(self, kind: str, key: str) -> Resource | None:
        """See ``ports.Ledger.find``."""
        name = self._id(kind, key)
        own = self._own_lines[name] = self.services.store.get(Resource, name)
        if own is not None and own.state != "gone":
            return own
        if not self._other_lines:
            # They do not change while this phase runs, which looks up many of them.
            self._other_lines.append([line for line in self.lines() if line.phase != self.phase])
        return next((line for line in self._other_lines[0] if (line.kind, line.key) == (kind, key)), None)

    def lines(self, phase: str | None = None) -> Sequence[Resource]:
        """See ``ports.Ledger.lines``."""
        return lines_of(self.services, self.owner.id, phase)


def lines_of(services: Services, owner_id: str, phase: str | None = None) -> list[Resource]:
    """Every line of a cluster or claim that is not ``gone``, oldest intent first."""
    prefix = f"{owner_id}/{phase}/" if phase else f"{owner_id}/"
    lines = [line for line in every(services.store, Resource, prefix) if line.state != "gone"]
    return sorted(lines, key=lambda line: (line.intended_at, line.id))


def planned_removals(lines: Iterable[Resource]) -> list[dict[str, str]]:
    """The lines as what a plan removes: their location is the same for most, and is told once by ``locations``."""
    return [{"kind": line.kind, "name": line.vendor_id or line.key} for line in lines]


def locations(lines: Iterable[Resource]) -> str:
    """Locations of the things of these lines: ``us-east-1 of cloud account 1``; empty for no line."""
    return " and ".join(sorted({f"{line.region} of cloud account {line.account_id}" for line in lines}))


def describe(line: Resource) -> str:
    """One line for people: kind, id and location of something that is still there."""
    return f"{line.kind} {line.vendor_id or line.key} in {line.region} of cloud account {line.account_id}"
