"""Prices as one tenant sees them: those that everybody pays, and the sheets of its own cloud accounts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stockyard.domain.records import PriceSheet
from stockyard.domain.values import ids
from stockyard.domain.values.frozen import dataclass

if TYPE_CHECKING:
    from stockyard.domain.nodes.offers import ClusterVersion, SpotPrices
    from stockyard.ports import PublicPrices, Store


@dataclass(frozen=True, slots=True)
class TenantPrices:
    """Implements ``ports.PriceList``. ``store`` has the tenant's records."""

    public: PublicPrices
    store: Store

    def instance(self, region: str, name: str) -> Mapping[str, Any] | None:
        """See ``ports.PublicPrices.instance``."""
        return self.public.instance(region, name)

    def offered(self, region: str, name: str) -> bool | None:
        """See ``ports.PublicPrices.offered``."""
        return self.public.offered(region, name)

    def rate(self, region: str, item: str) -> float | None:
        """See ``ports.PublicPrices.rate``."""
        return self.public.rate(region, item)

    def spot(self, region: str) -> SpotPrices | None:
        """See ``ports.PublicPrices.spot``."""
        return self.public.spot(region)

    def spot_history(self, region: str, name: str) -> Mapping[str, Sequence[tuple[str, float]]]:
        """See ``ports.PublicPrices.spot_history``."""
        return self.public.spot_history(region, name)

    def versions(self, region: str) -> Sequence[ClusterVersion]:
        """See ``ports.PublicPrices.versions``."""
        return self.public.versions(region)

    def why_unknown(self, region: str) -> str:
        """See ``ports.PublicPrices.why_unknown``."""
        return self.public.why_unknown(region)

    def sheet(self, account: int) -> bytes | None:
        """See ``ports.PriceList.sheet``. Read anew each time: a refresh is seen at once."""
        record = self.store.get(PriceSheet, ids.account_sheet(str(account)))
        return None if record is None else record.data
