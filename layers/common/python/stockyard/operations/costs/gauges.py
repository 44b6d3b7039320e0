"""The numbers of a tenant for monitoring, kept for as long as it cost to read them.

All are of one moment. The sums are read once, for the costs and for what is counted of claims.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, get_args

from stockyard.domain import gauges
from stockyard.domain.cost_records import GaugeReport
from stockyard.domain.gauges import Gauge, Sample
from stockyard.domain.records import ClusterDisruption, Operation
from stockyard.domain.values import ids, times
from stockyard.domain.values.states import OperationStatus, ReadyPhase, ShownClusterStatus
from stockyard.garbage import without_garbage_collection
from stockyard.operations.costs.claim_groups import ClaimGroup
from stockyard.operations.costs.kept_report import MOST_BYTES, keep
from stockyard.operations.costs.kept_sums import is_large, recent_sums
from stockyard.operations.costs.parts import NODES
from stockyard.operations.costs.report import Line, make_report
from stockyard.operations.listing import every
from stockyard.operations.services import Services
from stockyard.ports import Put

LEAST_SECONDS = 50
"""How long numbers serve: who reads them each minute always gets new ones."""
MOST_SECONDS = 900
RECORDS_A_SECOND = 20
"""Records that may be read for each second that numbers serve: some ten units of reading, whatever a tenant has."""
MOST_OPERATIONS = 1000
"""Of the operations of a day, how many are counted."""
_DAY = timedelta(days=1)
_ID = "text"
"""Id of what is kept as it is sent. Functions of the release before, which have samples as JSON, do not see it."""
_PAGE = 200


@without_garbage_collection()
def exposition(services: Services, write: Callable[[Iterable[Sample]], bytes]) -> bytes:
    """The samples of all families as ``write`` writes them by gzip, at most ``MOST_SECONDS`` old. Of two that are made
    at once the last is kept."""
    now = services.now()
    record = services.store.get(GaugeReport, _ID)
    if record is not None and now < record.serves_until:
        return record.data
    new, count = _read_anew(services)
    data = write(new)
    if len(data) <= MOST_BYTES:
        seconds = min(max(LEAST_SECONDS, count // RECORDS_A_SECOND), MOST_SECONDS)
        until = times.to_text(times.from_text(now) + timedelta(seconds=seconds))
        services.store.commit(Put(GaugeReport(_ID, now, until, data)))
    return data


def _read_anew(services: Services) -> tuple[list[Sample], int]:
    """New samples, and how many records were read for them."""
    sums = recent_sums(services)
    report = make_report(services, all_sums=sums)
    if not is_large(services):
        keep(services, report.document())
    totals = report.totals()
    clusters = [sums.clusters[key] for key in sums.cluster_names()]
    names = {cluster.id: {"cluster": str(cluster.name), "cluster_id": cluster.id} for cluster in clusters}
    groups = list(sums.groups)
    operations, since = _operations(services)
    new = [
        *_counted(gauges.CLUSTERS, "status", get_args(ShownClusterStatus), Tally(c.status for c in clusters)),
        *_of_costs(report.lines.lines, names),
        Sample(gauges.FORECAST.name, totals["known_forecast"]),
        Sample(gauges.COMPLETE.name, int(totals["complete"])),
        *_of_claims(groups, names),
        *_savings(services, names),
        *_budgets(totals),
        *_counted(gauges.OPERATIONS, "status", get_args(OperationStatus), Tally(o.status for o in operations)),
        Sample(gauges.OPERATIONS_SINCE.name, times.from_text(since).timestamp()),
        Sample(gauges.AS_OF.name, times.from_text(sums.as_of).timestamp()),
    ]
    return new, sums.read + len(operations)


def _counted(gauge: Gauge, label: str, values: Sequence[str], tally: Mapping[str, int]) -> Iterator[Sample]:
    for value in values:
        yield Sample(gauge.name, tally[value], {label: value})


def _of_costs(lines: Mapping[tuple[str, ...], Line], names: Mapping[str, Mapping[str, str]]) -> Iterator[Sample]:
    """Nodes and money by cluster, from the lines of a report; what is gone, and nodes of no cluster, together."""
    nodes, hours, spent = (defaultdict[tuple[str, str], float](float) for _ in range(3))
    for (kind, line_cluster, _, _, capacity_type), line in lines.items():
        cluster_id = line_cluster if line_cluster in names else ""
        own = cluster_id, kind
        if kind == NODES:
            nodes[cluster_id, capacity_type] += line.quantity
        hours[own] += line.hour if line.rate_known else 0.0
        spent[own] += line.spent if line.complete else 0.0
    for gauge, label, sums in (
        (gauges.NODES, "capacity_type", nodes),
        (gauges.COST_HOUR, "kind", hours),
        (gauges.SPENT, "kind", spent),
    ):
        for (cluster_id, value), amount in sorted(sums.items()):
            yield Sample(gauge.name, round(amount, 6), {**names.get(cluster_id, {}), label: value})


def _of_claims(groups: Sequence[ClaimGroup], names: Mapping[str, Mapping[str, str]]) -> Iterator[Sample]:
    """Claims by phase and those that wait, by cluster. Members of control planes are no nodes of anybody."""
    phases: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
    waiting = dict.fromkeys(names, 0)
    for group in groups:
        if group.kind.member:
            continue
        cluster_id = group.cluster_id if group.cluster_id in names else ""
        phases[cluster_id]["Deleting" if group.kind.deleting else group.kind.phase] += group.number
        waiting[cluster_id] = waiting.get(cluster_id, 0) + group.number * group.waits
    name, shown_phases = gauges.CLAIMS.name, (*get_args(ReadyPhase), "Deleting")
    for cluster_id in sorted({*phases, *names}):
        own, numbers = names.get(cluster_id, {}), phases[cluster_id]
        for phase in shown_phases:
            yield Sample(name, numbers[phase], {**own, "phase": phase})
    for cluster_id, count in sorted(waiting.items()):
        yield Sample(gauges.WAITING.name, count, names.get(cluster_id, {}))


def _savings(services: Services, names: Mapping[str, Mapping[str, str]]) -> Iterator[Sample]:
    month = services.now()[:7]
    records = every(services.store, ClusterDisruption, consistent=False)
    for record in (record for record in records if record.id in names):
        saved = sum(record.savings.values()) if record.savings_month == month else 0.0
        yield Sample(gauges.SAVED.name, round(saved, 6), names[record.id])
        if record.possible is not None:
            yield Sample(gauges.POSSIBLE.name, round(record.possible, 6), names[record.id])


def _budgets(document: Mapping[str, Any]) -> Iterator[Sample]:
    for budget in document["budgets"]:
        labels = {name: budget[name] for name in gauges.BUDGET.labels if budget[name] is not None}
        amounts = (gauges.BUDGET, "usd_month"), (gauges.BUDGET_SPENT, "spent"), (gauges.BUDGET_FORECAST, "forecast")
        for gauge, field in amounts:
            yield Sample(gauge.name, budget[field], labels)


def _operations(services: Services) -> tuple[list[Operation], str]:
    """The newest operations of the last day, and the moment since when they are all that there were."""
    begin = services.clock.now() - _DAY
    since, operations, after = ids.before(ids.OPERATION, begin), list[Operation](), None
    while len(operations) < MOST_OPERATIONS:
        page = services.store.list(Operation, after=after, limit=_PAGE, newest_first=True, since=since)
        operations += page.items
        after = page.next_id
        if after is None:
            return operations, times.to_text(begin)
    return operations, operations[-1].created_at
