"""Turns what happened into event records and outbox items, to be written in the same transaction as the change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from stockyard.domain.operation_records import Operation
from stockyard.domain.records import MESSAGES, CloudAccount, Cluster, Event, NodeClaim, Outbox
from stockyard.domain.values import ids
from stockyard.lifecycle.change import Transition
from stockyard.operations.engine.followers import follower_writes
from stockyard.operations.services import Services
from stockyard.ports import Create, Write


class EventSubject(Protocol):
    """A record that events are told of. Its ``sequence`` counts them."""

    @property
    def id(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def sequence(self) -> int: ...


def tell(services: Services, actor: str, about: EventSubject, transition: Transition, subject: str = "") -> list[Write]:
    """The event record of what happened and the outbox item that publishes it.

    ``about`` is the changed record, its ``sequence`` already raised; ``subject`` is how events name it where that is
    not its id.
    """
    subject, version, sequence = subject or about.id, about.version, about.sequence
    now = services.now()
    # Events of one moment are listed by their ids: those of one subject in the order of their sequence.
    order = sequence.to_bytes(4, "big") + services.clock.randomness(6)
    event = Event(
        ids.make(ids.EVENT, services.clock.now(), order),
        transition.about,
        subject,
        sequence,
        now,
        actor,
        transition.before,
        transition.after,
        transition.reason,
        transition.message,
        _belongs(about),
    )
    payload = {
        "detail_type": transition.about,
        "detail": {
            "id": event.id,
            "version": version,
            "tenant": services.tenant,
            "sequence": sequence,
            "time": now,
            "actor": actor,
            "subject": subject,
            "phase": {"before": transition.before, "after": transition.after},
            "reason": transition.reason,
            "message": transition.message,
            **_belongs(about),
        },
    }
    messages = follower_writes(services, about, transition) if isinstance(about, Operation) else []
    return [Create(event), Create(Outbox(services.new_id(ids.OUTBOX), "event", payload, now)), *messages]


def in_one_item(writes: Sequence[Write]) -> list[Write]:
    """The writes of a commit with all that it sends as one item of the outbox, in place of the first of them."""
    items = [item for write in writes if (item := _item(write)) is not None]
    if len(items) < 2:
        return list(writes)
    messages = [{**payload, "kind": kind} for item in items for kind, payload in item.messages]
    whole = replace(items[0], kind=MESSAGES, payload={"messages": messages})
    return [write if item is None else Create(whole) for write in writes if (item := _item(write)) in (None, items[0])]


def _item(write: Write) -> Outbox | None:
    return write.record if isinstance(write, Create) and isinstance(write.record, Outbox) else None


def _belongs(about: EventSubject) -> dict[str, str]:
    """Fields of an event about its resource: the name of a claim, of a cluster, or of an operation's subject, which
    events tell when it is gone, too. Of a claim also its cluster, whose sums it changes, and of one of a pool that
    pool, so that a rule can wake who looks after it, and where it stands."""
    if isinstance(about, Cluster):
        return {"name": about.name}
    if isinstance(about, Operation):
        return {"name": about.subject_name} if about.subject_name else {}
    if not isinstance(about, NodeClaim):
        return {}
    fields = {"name": about.name, **({"cluster_id": about.cluster_id} if about.cluster_id else {})}
    if about.pool:
        from stockyard.lifecycle.pools.spread import zone_of

        zone = zone_of(about)
        fields |= {"pool": about.pool, **({"zone": zone} if zone else {})}
    return fields


def account_writes(services: Services, actor: str, account: CloudAccount, transition: Transition) -> list[Write]:
    """The event of a change to a cloud account whose ``sequence`` was already raised."""
    return tell(services, actor, account, transition, f"cloud-account/{account.id}")
