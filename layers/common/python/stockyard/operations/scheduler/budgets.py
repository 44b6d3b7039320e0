"""Claims that one round of the scheduler may buy under the budgets of its tenant's month."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from stockyard.domain.month_budgets import BudgetLedger, BudgetWatch, MonthBudget, Scope, refusal_text
from stockyard.domain.nodes.disks import price_with_disk
from stockyard.domain.records import NodeClaim
from stockyard.lifecycle.nodes.node_claim import ADOPTED
from stockyard.operations.costs.budgets import budgets_over, next_watch, watch_of, watch_write
from stockyard.operations.costs.present_prices import PresentPrices
from stockyard.operations.node_providers.catalog import Catalog
from stockyard.operations.services import Services
from stockyard.ports import Write
from stockyard.scheduling.match import SelectedOffering
from stockyard.scheduling.order import RankedOffering

DEARER = 1.5
"""How many times the price of the selected offering another option may cost: what a launch may come to cost more is
withheld from other claims until it is over."""


@dataclass(slots=True)
class RoundBudgets:
    """The budgets of one round, what it has bought already taken from their rooms.

    ``watch`` is the record as it was before the sums were read: see ``BudgetWatch``. ``refused`` are the keys of scopes
    for which something was not bought.
    """

    services: Services
    prices: PresentPrices
    watch: BudgetWatch | None
    sums: BudgetLedger
    refused: set[str] = field(default_factory=set)

    @classmethod
    def read(cls, services: Services, catalog: Catalog, claims: Iterable[NodeClaim]) -> RoundBudgets:
        """Read what counts for the budgets of these claims; where there is none, little is read."""
        budgets = budgets_over(services, ((claim.cluster_id, claim.pool) for claim in claims))
        prices = PresentPrices(services, catalog)
        if not budgets:
            return cls(services, prices, None, BudgetLedger())
        from stockyard.operations.costs.kept_sums import ledger_now

        watch = watch_of(services)
        return cls(services, prices, watch, ledger_now(services, budgets))

    def of(self, claim: NodeClaim) -> Sequence[MonthBudget]:
        """The budgets that the claim is bought under, the narrowest first. One whose machine is there buys nothing."""
        if not self.sums.budgets or claim.machine_id or claim.reason == ADOPTED:
            return ()
        return self.sums.over(claim.cluster_id, claim.pool)

    def admitted(self, claim: NodeClaim, choice: SelectedOffering) -> SelectedOffering | str:
        """The first of the claim's offerings that its budgets have room for, which is taken; else why it waits."""
        budgets = self.of(claim)
        if not budgets:
            return choice
        offerings: Sequence[RankedOffering] = (choice, *choice.alternatives)
        for number, offering in enumerate(offerings):
            price = self._price(claim, offering)
            if price is not None and self._allowed(claim, offering, price):
                self._take(claim, price)
                return choice if not number else _selected(offering, choice.alternatives[number:])
        return self._refusal(claim, choice, budgets)

    def with_options(self, selections: Sequence[tuple[NodeClaim, SelectedOffering]]) -> list[SelectedOffering]:
        """The selections with the options that their budgets have room for as well, each claim an equal part of it."""
        counts = Counter(budget.scope for claim, _ in selections for budget in self.of(claim))
        spare = {
            budget.scope: max(0.0, budget.room / budget.hours_left - budget.launching) / counts[budget.scope]
            for budget in self.sums.budgets
            if counts[budget.scope] and budget.hours_left
        }
        return [self._narrowed(claim, choice, spare) for claim, choice in selections]

    def guarding(self, claims: Iterable[NodeClaim]) -> list[Write]:
        """Writes beside these claims when they are bound; nothing where no budget is over them."""
        if not any(self.of(claim) for claim in claims):
            return []
        return [watch_write(next_watch(self.services, self.watch))]

    def bound(self, claims: Iterable[NodeClaim]) -> None:
        """Count these claims, which were bound with the writes of ``guarding``."""
        if any(self.of(claim) for claim in claims):
            self.watch = next_watch(self.services, self.watch)

    def _price(self, claim: NodeClaim, offering: RankedOffering) -> float | None:
        price = price_with_disk(offering.usd_hour, offering.node_type, claim.properties)
        return 0.0 if price is None and self.prices.is_owned(offering.node_type.name) else price

    def _more(self, claim: NodeClaim, price: float) -> float:
        """Cost of the claim beyond what counts already: a member that its cluster lacks is an item of the cluster."""
        is_item = claim.control_plane and self.sums.missing_members.get(claim.cluster_id, 0) > 0
        return 0.0 if is_item else price

    def _allowed(self, claim: NodeClaim, offering: RankedOffering, price: float) -> bool:
        if not price and self.prices.is_owned(offering.node_type.name):
            return True
        return self.sums.refusing(claim.cluster_id, claim.pool, self._more(claim, price)) is None

    def _take(self, claim: NodeClaim, price: float) -> None:
        more = self._more(claim, price)
        self.sums.take(claim.cluster_id, claim.pool, more, more)
        if claim.control_plane:
            missing = self.sums.missing_members.get(claim.cluster_id, 0)
            self.sums.missing_members[claim.cluster_id] = missing - 1

    def _narrowed(self, claim: NodeClaim, choice: SelectedOffering, spare: Mapping[Scope, float]) -> SelectedOffering:
        budgets = self.of(claim)
        if not budgets or not choice.alternatives:
            return choice
        price = self._price(claim, choice) or 0.0
        margin = min([price * (DEARER - 1), *(spare.get(budget.scope, 0.0) for budget in budgets)])
        priced = [(option, self._price(claim, option)) for option in choice.alternatives]
        options = tuple(option for option, usd in priced if usd is not None and usd <= price + margin)
        most = max((usd for _, usd in priced if usd is not None and usd <= price + margin), default=price)
        self.sums.take(claim.cluster_id, claim.pool, 0.0, max(0.0, most - price))
        return replace(choice, alternatives=options)

    def _refusal(self, claim: NodeClaim, choice: SelectedOffering, budgets: Sequence[MonthBudget]) -> str:
        name, price = choice.node_type.name, self._price(claim, choice)
        if price is None:
            return refusal_text(budgets[0], name, None)
        more = self._more(claim, price)
        budget = self.sums.refusing(claim.cluster_id, claim.pool, more) or budgets[0]
        self.refused |= {each.scope.key for each in budgets if each.is_reached_for(more)}
        return refusal_text(budget, name, more)


def _selected(offering: RankedOffering, alternatives: Sequence[RankedOffering]) -> SelectedOffering:
    return SelectedOffering(
        offering.node_type,
        offering.capacity_type,
        offering.zones,
        offering.usd_hour,
        offering.cost,
        tuple(alternatives),
    )
