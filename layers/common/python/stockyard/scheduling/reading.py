"""Claims of one batch as the matcher wants them; what many of them share is read once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from stockyard.domain.nodes.defaults import defaults_of
from stockyard.domain.pools.bids import Bid
from stockyard.domain.values.quantities import milli
from stockyard.domain.values.requirements import Requirement, Requirements
from stockyard.scheduling.match import SchedulingRequest


class Reader:
    """Reads the claims of one batch. It remembers requirements and quantities, so make a new one for the next."""

    __slots__ = ("_entries", "_quantities")

    def __init__(self) -> None:
        self._entries: dict[tuple[Any, ...], Requirement] = {}
        self._quantities: dict[str, int] = {}

    def request(
        self,
        requirements: Iterable[Mapping[str, Any]] = (),
        resources: Mapping[str, str | float] | None = None,
        provider: str | None = None,
        allowed: Iterable[str] | None = None,
        out_of_reach: frozenset[str] = frozenset(),
        in_money: bool = False,
        bid: Bid | None = None,
        zone_ids: Mapping[str, Mapping[str, str]] | None = None,
    ) -> SchedulingRequest:
        """One claim from its selector entries and quantities. Raises ``ValueError`` that names the key."""
        by_key = Requirements.of(requirements, self._entries)
        return SchedulingRequest(
            by_key,
            {name: self._milli(name, quantity) for name, quantity in (resources or {}).items()},
            provider,
            None if allowed is None else tuple(allowed),
            out_of_reach,
            in_money,
            bid,
            zone_ids or {},
            defaults=defaults_of(by_key, bids=bid is not None),
        )

    def _milli(self, name: str, quantity: str | float) -> int:
        cached = self._quantities.get(quantity) if type(quantity) is str else None
        if cached is not None:
            return cached
        try:
            amount = milli(quantity)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        if type(quantity) is str:
            self._quantities[quantity] = amount
        return amount
