"""The index of a catalogue. It is built once per version of the catalogue and used for every claim."""

from __future__ import annotations

from collections.abc import Sequence

from stockyard.domain.node_types import NodeType
from stockyard.scheduling.order import cheapest_first, ranked_offerings
from stockyard.scheduling.table import Table


class Index:
    """Node types, indexed: one table over all providers, ordered by price, and one table per provider, ordered by cost.

    Tables are built when they are first used. Nothing else is kept between calls.
    """

    __slots__ = ("_tables", "node_types", "providers")

    def __init__(self, node_types: Sequence[NodeType]) -> None:
        self.node_types: tuple[NodeType, ...] = tuple(node_types)
        self.providers: frozenset[str] = frozenset(node_type.provider for node_type in self.node_types)
        self._tables: dict[str | None, Table] = {}

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

    def table(self, provider: str | None) -> Table:
        """The rows of one provider ordered by cost, or all rows ordered by price. It may be empty."""
        table = self._tables.get(provider)
        if table is None:
            node_types = (
                self.node_types
                if provider is None
                else [node_type for node_type in self.node_types if node_type.provider == provider]
            )
            table = Table.build(node_types, cheapest_first(ranked_offerings(node_types), provider))
            if provider is None or provider in self.providers:  # an unknown name must not fill the memory
                self._tables[provider] = table
        return table
