"""The index of a catalogue: built once per version of it, asked for every claim."""

from __future__ import annotations

from collections.abc import Sequence

from stockyard.domain.node_types import NodeKind
from stockyard.scheduling.order import cheapest_first, rows_of
from stockyard.scheduling.table import Table


class Index:
    """Node kinds by what can be asked of them: one table over all, in order of money, one per provider, by cost.

    Tables are made when they are first asked for; nothing else is kept between calls.
    """

    __slots__ = ("_tables", "kinds", "providers")

    def __init__(self, kinds: Sequence[NodeKind]) -> None:
        self.kinds: tuple[NodeKind, ...] = tuple(kinds)
        self.providers: frozenset[str] = frozenset(kind.provider for kind in self.kinds)
        self._tables: dict[str | None, Table] = {}

    @classmethod
    def build(cls, kinds: Sequence[NodeKind], providers: Sequence[str | None] = ()) -> Index:
        """The index of ``kinds``; tables of ``providers`` (None is the one over all) are made at once.

        Raises ``ValueError`` when two kinds have one name.
        """
        seen: set[str] = set()
        for kind in kinds:
            if kind.name in seen:
                raise ValueError(f"the node type {kind.name} is there twice")
            seen.add(kind.name)
        index = cls(kinds)
        for provider in providers:
            index.table(provider)
        return index

    def table(self, provider: str | None) -> Table:
        """The rows of one provider in order of cost, or all rows in order of money. It may be empty."""
        found = self._tables.get(provider)
        if found is None:
            kinds = self.kinds if provider is None else [kind for kind in self.kinds if kind.provider == provider]
            found = Table.build(kinds, cheapest_first(rows_of(kinds), provider))
            if provider is None or provider in self.providers:  # an unknown name must not fill the memory
                self._tables[provider] = found
        return found
