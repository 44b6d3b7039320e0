"""The sweep of entries by subject: gives one to each record that an earlier release has written, and says up to where
all records have one. Lists of one subject go by entries up to there and read the table behind it. Entries of
operations are all given here.

The bound moves on over records that were found with entries alone. One that is given its entry here is looked at again
by a later turn: the index is behind the table for a moment. So it does not matter when a release without entries was at
work, or whether it comes back.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from stockyard.domain.operation_records import subject_operation
from stockyard.domain.records import Fact, Operation
from stockyard.domain.subject_entries import PREFIXES, bound_fact
from stockyard.domain.values import ids, times
from stockyard.operations.services import Services
from stockyard.ports import Put

AGE = timedelta(minutes=2)
"""Younger records are left to the table: one may still be on its way there, as its id is older than its write, and its
entry on the way to the index. For as long nothing is looked at behind a turn that gave entries."""
MOST = 10_000
"""Records of a kind that one turn looks at."""
MOST_GIVEN = 2_000
"""Entries of a kind that one turn gives."""
AGE_OF_OPERATIONS = timedelta(minutes=5)
"""Younger operations are left to the table: all get their entries here, so that one that comes late would have none."""


def sweep_entries(services: Services) -> str | None:
    """Give entries and move the bounds on; what was done."""
    count = sum(_sweep_kind(services, kind, prefix) for kind, prefix in PREFIXES.items())
    _sweep_operations(services)
    return f"gave {count} entries to history of" if count else None


def _sweep_kind(services: Services, kind: type[Any], prefix: str) -> int:
    """The number of entries that records of the kind got."""
    store, settled = services.store, services.clock.now() - AGE
    until = ids.before(prefix, settled)
    fact = store.get(Fact, bound_fact(kind))
    if fact is not None and fact.time > times.to_text(settled):
        return 0
    bound = since = fact.value if fact else ""
    count = looked_at = 0
    while looked_at < MOST and count < MOST_GIVEN:
        page = store.lacking_entries(kind, since=since, until=until)
        if page.items and not count:
            # all before it have theirs; without its last letter it is no id, and stands before it
            bound = max(bound, page.items[0].id[:-1])
        count, looked_at = count + len(page.items), looked_at + page.read
        _put_again(services, page.items)
        if page.next_id is None:
            since = until
            break
        since = page.next_id
    if not count:
        bound = max(bound, since if since == until else since[:-1])
    if fact is None or count or (bound != fact.value and looked_at):
        store.commit(Put(Fact(bound_fact(kind), bound, services.now())))
    return count


def _put_again(services: Services, records: Sequence[Any]) -> None:
    for begin in range(0, len(records), 100):
        services.store.commit(*map(Put, records[begin : begin + 100]))


def _sweep_operations(services: Services) -> None:
    """Give each operation behind the bound its entry, whichever release has written it. The entry is in the table
    itself, so the bound moves on at once."""
    store, until = services.store, ids.before(ids.OPERATION, services.clock.now() - AGE_OF_OPERATIONS)
    fact = store.get(Fact, bound_fact(Operation))
    bound = since = fact.value if fact else ""
    after: str | None = None
    count = 0
    while count < MOST_GIVEN:
        page = store.list(Operation, since=since, after=after, limit=100, consistent=False)
        operations = [operation for operation in page.items if operation.id < until]
        if operations:
            store.commit(*(Put(subject_operation(operation)) for operation in operations))
        count += len(operations)
        after = page.next_id
        if after is None or len(operations) < len(page.items):
            bound = max(bound, until)
            break
        bound = after[:-1]
    if fact is None or count:
        store.commit(Put(Fact(bound_fact(Operation), bound, services.now())))
