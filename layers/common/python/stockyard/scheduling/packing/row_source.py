"""The ways to make a node of each pool, one row each, before anything is asked of them.

A row is a pool, a node type, a capacity type and a zone, with its price. Where a pool or a type leaves the value of a
label open and some pod asks for it, there is a row for each value that matters.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import product

from stockyard.domain.nodes.node_types import ANY, PODS, NodeType
from stockyard.domain.nodes.zone_ids import is_zone_id
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.requirements import (
    ARCH,
    CAPACITY_TYPE,
    HOSTNAME,
    INSTANCE_TYPE,
    NODE_POOL,
    NODE_TYPE,
    OS,
    REGION,
    ZONE,
    Requirement,
    normal_key,
)
from stockyard.scheduling.host_ports import HostPort
from stockyard.scheduling.packing.model import Node, Pod, Pool, Term
from stockyard.scheduling.table import NAME_KEYS

OTHER = object()
"""A value that nobody names: it satisfies what excludes values, and what only asks for the key."""
Value = object
"""The value of a label in a row: a text, ``OTHER``, or None where the node does not have the label."""
WELL_KNOWN = frozenset({NODE_POOL, ZONE, REGION, INSTANCE_TYPE, NODE_TYPE, ARCH, OS, CAPACITY_TYPE}) | {
    "node.kubernetes.io/windows-build"
}
"""Labels that a node gets although neither pool nor type says so."""
UNKNOWN_PRICE = float("inf")
NOTHING = Requirement(True)


@dataclass(frozen=True, slots=True)
class Row:
    """One way to make a node. ``room`` is for pods: allocatable less what daemon sets take."""

    pool: int
    node_type: NodeType
    capacity_type: str
    zone: str
    price: float
    """What plans make as small as they can, see ``NodeType.weight``: USD an hour of what is rented."""
    room: Mapping[str, int]
    values: Mapping[str, Value]
    """The values of the labels that were left open."""
    ports: tuple[HostPort, ...] = ()
    """The ports of the node that daemon sets take."""
    own_usd_hour: float = 0.0
    """The price that the owner of an owned type says."""

    @property
    def usd_hour(self) -> float:
        """Price in money; ``UNKNOWN_PRICE`` where it is not known."""
        return self.own_usd_hour if self.node_type.owned else self.price


def zones_of(pools: Iterable[Pool]) -> set[str]:
    """The zones of all offerings of the pools' types; ``*`` among them where one is open."""
    types = {id(node_type): node_type for pool in pools for node_type in pool.node_types}
    return {zone for node_type in types.values() for offering in node_type.offerings for zone in offering.zones}


class RowSource:
    """Makes the rows of some pools for some pods. ``nodes`` are those that are there: types that can be had in any zone
    can be had in theirs. ``volumes`` are the places for volumes, by resource, of a node without a limit: nobody knows
    the limits of one that is still to be made."""

    def __init__(
        self,
        pools: Sequence[Pool],
        pods: Iterable[Pod],
        daemons: Sequence[Pod],
        nodes: Iterable[Node] = (),
        volumes: Mapping[str, int] | None = None,
    ) -> None:
        self._nodes, self._volumes = nodes, volumes or {}
        self._port_sets: dict[tuple[int, ...], tuple[HostPort, ...]] = {}
        self.pools = sorted(pools, key=lambda pool: pool.name, reverse=True)
        self.pools.sort(key=lambda pool: -pool.weight)
        self.mentioned = named_labels((*pods, *daemons))
        rows = [row for number, pool in enumerate(self.pools) for row in self._rows_of(number, pool, daemons)]
        self.rows = sorted(rows, key=self._order)

    def _order(self, row: Row) -> tuple[int, float, str, str, str, int]:
        pool = self.pools[row.pool]
        return (-pool.weight, row.price, row.node_type.name, row.capacity_type, row.zone, row.pool)

    def _rows_of(self, number: int, pool: Pool, daemons: Sequence[Pod]) -> Iterator[Row]:
        labels = [(normal_key(key), value) for key, value in pool.labels.items()]
        if any(not pool.requirements[key].has(value) for key, value in labels if key in pool.requirements):
            return
        candidates = [daemon for daemon in daemons if daemon.tolerates(pool.taints, preferred=False)]
        for node_type in pool.node_types:
            if not node_type.available or not self._named(pool, node_type):
                continue
            overhead = self._daemons(pool, node_type, candidates)
            room = {name: amount - overhead.get(name, 0) for name, amount in node_type.allocatable.items()}
            if any(amount < 0 for amount in room.values()) or not room.get(PODS, 1):
                continue
            room = {**self._volumes, **room}
            port_daemons = [daemon for daemon in candidates if daemon.ports and self._runs_on(pool, node_type, daemon)]
            ports = self._ports_of(port_daemons)
            for row in self._rows_of_type(number, pool, node_type, room):
                yield replace(row, ports=ports) if ports else row

    def _ports_of(self, daemons: Sequence[Pod]) -> tuple[HostPort, ...]:
        """The ports that these daemon sets take of a node; one object for the same daemon sets."""
        memo_key = tuple(map(id, daemons))
        if memo_key not in self._port_sets:
            self._port_sets[memo_key] = tuple(sorted({port for daemon in daemons for port in daemon.ports}, key=repr))
        return self._port_sets[memo_key]

    def _named(self, pool: Pool, node_type: NodeType) -> bool:
        """Whether the pool's requirements on names of types allow this one."""
        for key in NAME_KEYS:
            requirement = pool.template.get(key)
            if requirement is not None:
                spellings = {node_type.name, node_type.bare, *node_type.properties.get(key, ())}
                if requirement.complement:
                    if not all(map(requirement.has, spellings)):
                        return False
                elif not any(map(requirement.has, spellings)):
                    return False
        return True

    def _rows_of_type(self, number: int, pool: Pool, node_type: NodeType, room: Mapping[str, int]) -> Iterator[Row]:
        template = pool.template
        keys = [key for key in node_type.properties if key in template and key not in NAME_KEYS]
        if any(not self.possible(pool, node_type, key) for key in keys):
            return
        open_keys, choices = [], []
        id_keys = [key for key in self.mentioned if pool.zone_ids and is_zone_id(key)]
        for key in self.mentioned:
            if key in (CAPACITY_TYPE, ZONE, HOSTNAME, *NAME_KEYS, *id_keys):
                continue
            values = self.possible(pool, node_type, key)
            if not values:
                return
            if len(values) > 1:
                open_keys.append(key)
                choices.append(values)
        combinations = [dict(zip(open_keys, combination, strict=True)) for combination in product(*choices)]
        capacity, zones = template.get(CAPACITY_TYPE, NOTHING), template.get(ZONE, NOTHING)
        for offering in node_type.offerings:
            if not capacity.has(offering.capacity_type):
                continue
            weight, money = node_type.weight(offering), node_type.money(offering)
            price = UNKNOWN_PRICE if weight is None else weight
            for zone in self._zones(offering.zones, zones):
                ids = dict.fromkeys(id_keys, pool.zone_ids.get(str(zone)))
                for values_of_open in combinations:
                    named = {**values_of_open, **ids, ZONE: zone}
                    own = money or 0.0
                    kind = offering.capacity_type
                    yield Row(number, node_type, kind, str(zone), price, room, named, own_usd_hour=own)

    def _zones(self, zones: Sequence[str], requirement: Requirement) -> list[str]:
        """The zones of an offering that the pool allows; for any zone those that somebody names, and where pods ask for
        zones those that are known. Only where there is none of them it stays open."""
        if ANY not in zones:
            return [zone for zone in zones if requirement.has(zone)]
        named = {zone for zone in self._names(ZONE) if requirement.has(zone)} | set(requirement.values - {""})
        if ZONE in self.mentioned:
            named |= self._known_zones
        return sorted(zone for zone in named if requirement.has(zone)) or ([ANY] if requirement.complement else [])

    @cached_property
    def _known_zones(self) -> frozenset[str]:
        """The zones of other types, and of the nodes that are there."""
        zones = {node.labels.get(ZONE, ANY) for node in self._nodes}
        return frozenset(zones | zones_of(self.pools)) - {ANY}

    def _names(self, key: str) -> list[str]:
        return [str(value) for value in self.mentioned.get(key, ())]

    def possible(self, pool: Pool, node_type: NodeType, key: str) -> Sequence[Value]:
        """The values that a node of this pool and type may have of a label; empty when there can be no such node."""
        required = pool.template.get(key)
        declared = node_type.properties.get(key)
        if declared is not None and declared != (ANY,):
            if not declared:
                return (None,) if required is None or required.absence_fits else ()
            return tuple(value for value in declared if required is None or required.has(value))
        if required is None:
            # The ids of zones that are not known yet are open: the claim asks for what its pods name.
            if key not in WELL_KNOWN and not (is_zone_id(key) and pool.opens_zone_ids):
                return (None,)
            return (OTHER, *self._names(key), None)
        if not required.complement:
            return tuple(sorted(required.values)) or (None,)
        named = tuple(value for value in self._names(key) if required.has(value))
        return (*([] if required.bounded else [OTHER]), *named) or (str(required.gte or required.lte or 0),)

    def _daemons(self, pool: Pool, node_type: NodeType, daemons: Sequence[Pod]) -> Mapping[str, int]:
        """Requests of the daemon sets that would run on such a node."""
        overhead: defaultdict[str, int] = defaultdict(int)
        for daemon in daemons:
            if self._runs_on(pool, node_type, daemon):
                for name, amount in daemon.requests:
                    overhead[name] += amount
        return overhead

    def _runs_on(self, pool: Pool, node_type: NodeType, daemon: Pod) -> bool:
        """Whether a daemon set has a pod on nodes of this pool and type, as far as their labels go."""
        return any(self._runs(pool, node_type, term) for term in daemon.terms)

    def _runs(self, pool: Pool, node_type: NodeType, term: Term) -> bool:
        for key, requirement in term:
            if key == HOSTNAME:
                continue
            required = pool.template.get(key)
            if required is None and key not in WELL_KNOWN and not requirement.absence_fits:
                return False
            if required is not None and not required.overlaps(requirement):
                return False
            declared = node_type.properties.get(key)
            if declared is not None and declared != (ANY,):
                fits = any(map(requirement.has, declared)) if declared else requirement.absence_fits
                if not fits:
                    return False
        return True


def named_labels(pods: Iterable[Pod]) -> dict[str, tuple[str, ...]]:
    """The labels that pods ask about, with the values that they name; the bounds of a range are such values."""
    values: defaultdict[str, set[str]] = defaultdict(set)
    for pod in pods:
        preferred = [preference.requirements for preference in pod.preferences]
        for item in (*pod.terms, *preferred, *pod.volumes):
            for key, requirement in item:
                values[key] |= requirement.values
                values[key] |= {str(bound) for bound in (requirement.gte, requirement.lte) if bound is not None}
        terms = [*pod.affinity, *pod.anti_affinity]
        for key in [spread.key for spread in pod.spreads] + [item.key for item in terms]:
            values[key] |= set()
    return {key: tuple(sorted(listed)) for key, listed in sorted(values.items())}
