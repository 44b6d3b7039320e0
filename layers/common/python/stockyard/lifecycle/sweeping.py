"""Things that the sweep may remove, and parts of clusters that it misses: pure rules of law 5."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from stockyard.domain.records import Resource
from stockyard.domain.values import times
from stockyard.domain.values.conditions import Condition

TRUST = timedelta(hours=1)
"""How long after the last sweep the table is taken for the one that was swept; sweeps come every five minutes."""


def trusted(last_sweep: tuple[str, str] | None, table_id: str, now: datetime) -> bool:
    """Whether the table is the one of the last sweep: no restored copy, and not set back in time.

    ``mark`` is (table id, time) of the last sweep; None before the first one. An older table does not know younger
    clusters, whose resources would look like orphans (law 5).
    """
    return last_sweep is None or (last_sweep[0] == table_id and now - times.from_text(last_sweep[1]) <= TRUST)


QUIET_SECONDS = 3600
"""After so long without an event a tenant is quiet, and so often its scopes are swept then."""
EARLY_SECONDS = 120
"""How much earlier a quiet scope may be swept: schedules do not come to the second."""


def scope_due(calm_since: str | None, last_event: str | None, now: datetime) -> bool:
    """Whether a scope is to be swept. ``calm_since`` is when its last sweep began that left nothing to be watched; None
    for none. ``last_event`` is the tenant's last."""
    if calm_since is None or now - times.from_text(calm_since) >= timedelta(seconds=QUIET_SECONDS - EARLY_SECONDS):
        return True
    return not is_quiet(last_event, now)


def is_quiet(last_event: str | None, now: datetime) -> bool:
    """Whether nothing has happened for long in a tenant whose last event was then."""
    return last_event is None or now - times.from_text(last_event) >= timedelta(seconds=QUIET_SECONDS)


APART = timedelta(minutes=2)
"""How long after the first sighting a second one counts: two sweeps at once see what is there at one moment."""


def too_many(orphans: int, tagged: int) -> bool:
    """Whether removing ``orphans`` of ``tagged`` things would be suspicious: more than max(5, 5 %)."""
    return orphans > max(5, tagged * 5 // 100)


def old_enough(created_at: str | None, first_seen: str | None, now: datetime, grace: timedelta) -> bool:
    """Older than the grace period and seen before, by an earlier sweep. Without a creation time the first sighting
    counts."""
    if first_seen is None or now - times.from_text(first_seen) < APART:
        return False
    born = times.from_text(created_at) if created_at else times.from_text(first_seen)
    return now - born > grace


def stale_sightings(sightings: Mapping[str, str], present: Collection[str]) -> list[str]:
    """Sightings of things that are no longer there."""
    return [key for key in sightings if key not in present]


COMPLETE = "InfrastructureComplete"
"""The condition of a cluster of whose parts in the cloud some are gone; absent while none is missed."""
PARTS_GONE = "PartsGone"
"""Its reason."""
MOST_SUSPECTS = 20
"""Lines of one cluster that the cloud is asked about in one look."""


def unlisted(lines: Sequence[Resource], listed: Collection[tuple[str, str]]) -> list[Resource]:
    """The made lines whose thing is not ``listed``, as kind and vendor id, among what carries our tags. Somebody may
    have taken the tags alone, and what the tenant has given never had any: the cloud has to be asked."""
    return [line for line in lines if line.state == "made" and (line.kind, line.vendor_id) not in listed]


def incomplete(remade: Sequence[str], other_parts: Sequence[str], given_parts: Sequence[str], now: str) -> Condition:
    """Condition of parts that are gone, by their names: ``remade`` are made again by a change of the cluster,
    ``given_parts`` are the tenant's own."""
    sentences = [f"Gone from the cloud account: {', '.join([*remade, *other_parts, *given_parts])}."]
    if remade:
        sentences.append(f"The next change of the cluster makes {', '.join(remade)} again.")
    if given_parts:
        sentences.append(f"Name others in the settings instead of {', '.join(given_parts)}.")
    return Condition(COMPLETE, "False", PARTS_GONE, " ".join(sentences), now)
