"""The index of a catalogue. It is built once per version of the catalogue and used for every claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stockyard.domain.nodes.node_types import NodeType
from stockyard.scheduling.order import RankedOffering, cheapest_first, ranked, ranked_offerings
from stockyard.scheduling.table import Table


class Index:
    """Node types, indexed: one table over all providers, ordered by price, and one table per provider, ordered by cost.

    Tables are built when they are first used, and what explanations look up too. Nothing of a claim is kept.
    """

    __slots__ = ("_by_values", "_cheapest", "_tables", "node_types", "providers")

    def __init__(self, node_types: Sequence[NodeType]) -> None:
        self.node_types: tuple[NodeType, ...] = tuple(node_types)
        self.providers: frozenset[str] = frozenset(node_type.provider for node_type in self.node_types)
        self._tables: dict[tuple[str | None, bool], Table] = {}
        self._by_values: dict[str, dict[tuple[str, ...], list[str]]] = {}
        self._cheapest: dict[tuple[str, bool], RankedOffering | None] = {}

    @classmethod
    def build(cls, node_types: Sequence[NodeType], providers: Sequence[str | None] = ()) -> Index:
        """The index of ``node_types``. The tables of ``providers`` (None for all providers) are built at once.

        Raises ``ValueError`` when two node types have one name.
        """
        names: set[str] = set()
        for node_type in node_types:
            if node_type.name in names:
                raise ValueError(f"the node type {node_type.name} is there twice")
            names.add(node_type.name)
        index = cls(node_types)
        for provider in providers:
            index.table(provider)
        return index

    def table(self, provider: str | None, *, in_money: bool = False) -> Table:
        """The rows of one provider ordered by cost, or with ``in_money`` by price, or all rows ordered by price. It may
        be empty."""
        memo_key = (provider, in_money)
        table = self._tables.get(memo_key)
        if table is None:
            node_types = (
                self.node_types
                if provider is None
                else [node_type for node_type in self.node_types if node_type.provider == provider]
            )
            table = Table.build(
                node_types, cheapest_first(ranked_offerings(node_types), None if in_money else provider)
            )
            if provider is None or provider in self.providers:  # an unknown name must not fill the memory
                self._tables[memo_key] = table
        return table

    def by_values(self, key: str) -> Mapping[tuple[str, ...], Sequence[str]]:
        """Names of node types by the values that they have of a property; those without it by an empty tuple."""
        if not self._by_values:
            self._by_values[""] = {(): [node_type.name for node_type in self.node_types]}
            for listed_key in {key for node_type in self.node_types for key in node_type.properties}:
                groups = self._by_values[listed_key] = {}
                for node_type in self.node_types:
                    groups.setdefault(node_type.properties.get(listed_key, ()), []).append(node_type.name)
        return self._by_values.get(key, self._by_values[""])

    def cheapest_offering(self, node_type: NodeType, provider: str | None) -> RankedOffering | None:
        """The first offering of ``node_type`` in the order of choice; None when it has none."""
        memo_key = (node_type.name, provider is None)
        if memo_key not in self._cheapest:
            rows = cheapest_first([ranked(node_type, offering) for offering in node_type.offerings], provider)
            self._cheapest[memo_key] = rows[0] if rows else None
        return self._cheapest[memo_key]
