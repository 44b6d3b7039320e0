"""Port to a cloud account, whatever works in it, and to the catalogue of prices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, Protocol

from stockyard.domain.nodes.offers import ClusterVersion, SpotPrices
from stockyard.domain.records import CloudAccount, Cluster
from stockyard.domain.values.frozen import dataclass
from stockyard.errors import VendorError, VendorRefused


@dataclass(frozen=True, slots=True)
class Tagged:
    """Something in a cloud that carries our four tags."""

    kind: str
    vendor_id: str
    region: str
    tenant: str
    resource_id: str
    generation: str
    created_at: str | None = None


@dataclass(frozen=True, slots=True)
class LedgerThings:
    """Things of an account by the ledgers of living records: a sweep need not ask for them one by one."""

    owners: Mapping[tuple[str, str], str]
    """(kind, vendor id) of a thing that is made -> the id of the record that it belongs to."""
    resting: Set[str] = frozenset()
    """Ids of living records whose inner kinds are not looked at this time."""


Skipped = Callable[[str, VendorError], None]
"""Is told a region that a sweep could not look at, and why."""


@dataclass(frozen=True, slots=True)
class Verification:
    """Result of the check of an account's credentials, with the reason in words for people."""

    works: bool
    message: str
    warnings: tuple[str, ...] = ()
    """What works less well than it could, one sentence or two each."""
    principal_id: str = ""
    """The id that the cloud itself gave who we are there: another one of the same name has another. Empty: it has
    none, or it does not work."""


class RunsPrograms(Protocol):
    """A cloud in whose accounts programs of node providers can run, see ``ports.runs``."""

    def run_template(self, account: CloudAccount) -> dict[str, Any] | None:
        """The document that a tenant deploys in the account besides, where such programs are to run."""
        return None


class ListsByLedger(Protocol):
    """A cloud whose sweep asks less where the ledger says whose a thing is."""

    lists_by_ledger: bool = False
    """Whether it is one: then ``tagged_beside`` asks less than ``tagged``."""

    @property
    def inner_kinds(self) -> Set[str]:
        """Kinds of things that stand within another thing of the same record, and that only that one lists. Without
        it there is none of them, and while its record lives none of them is an orphan."""
        return frozenset()


class SellsByAccount(Protocol):
    """A cloud that distinguishes accounts by offers, prices and free capacity."""

    sells_by_account: bool = False
    """Whether it is one."""

    def offers(self, account: CloudAccount, tenant: str, moment: str) -> bytes:
        """The offer to the account at ``moment``, in the format of records, for the drivers and sources of this cloud
        alone: a sheet that fits into a record. Raises ``VendorError`` leaves."""
        raise VendorRefused("this cloud offers the same to all", code="NoOffers")


class Cloud(RunsPrograms, ListsByLedger, SellsByAccount, Protocol):
    """One kind of cloud, as seen through a tenant's account in it, whatever makes things there. What only some can do
    has a default: that of a cloud that cannot."""

    def verify(self, account: CloudAccount, tenant: str) -> Verification:
        """Whether the account's credentials work, and work for us alone. Raises ``VendorError`` leaves."""

    def principal(self, attributes: Mapping[str, Any]) -> str:
        """Our identity in the account. It may not change while clusters stand there."""

    def check_attributes(self, attributes: Mapping[str, Any]) -> None:
        """``InvalidInput`` for what the cloud does not have, a region for example. Makes no call."""

    def machine_roles(self, account: CloudAccount, cluster: Cluster) -> tuple[str, Sequence[str]]:
        """Values that the cluster's machines in the account prove to have: ``account`` of a ``MachineIdentity``, and
        the values that its ``role`` may have. Makes no call."""

    def regions(self, account: CloudAccount) -> Sequence[str]:
        """The regions in which the account's things stand when nothing says otherwise."""

    def template(self, account: CloudAccount, installation: str) -> dict[str, Any]:
        """The document that a tenant deploys in the account, so that we may work there."""

    def tagged(
        self,
        account: CloudAccount,
        installation: str,
        tenant: str,
        regions: Sequence[str],
        skipped: Skipped | None = None,
    ) -> Sequence[Tagged]:
        """Everything in the account that carries our tags (for the sweep).

        A region that cannot be asked is told to ``skipped`` and left out; without ``skipped``, or when no region
        answers, its error is raised.
        """

    def tagged_beside(
        self,
        account: CloudAccount,
        installation: str,
        tenant: str,
        regions: Sequence[str],
        ledger: LedgerThings,
        skipped: Skipped | None = None,
    ) -> Sequence[Tagged]:
        """As ``tagged``: a listed thing on the ``ledger`` is taken for what the ledger says, without its tags being
        read; inner kinds of ``ledger.resting`` are left out."""
        return self.tagged(account, installation, tenant, regions, skipped)

    def discard(self, account: CloudAccount, thing: Tagged, tenant: str) -> bool:
        """Remove one orphan; True when it is gone. A thing of another tenant is left alone: False."""


class PublicPrices(Protocol):
    """Public prices of machines and networks: offline data, refreshed by a schedule."""

    def instance(self, region: str, name: str) -> Mapping[str, Any] | None:
        """vcpu, memory_mib, architecture, usd_hour (None when unknown), fabric_interfaces; None when the type is not
        known."""

    def offered(self, region: str, name: str) -> bool | None:
        """Whether the region offers the type; None when the catalogue has no data of the region."""

    def rate(self, region: str, item: str) -> float | None:
        """USD an hour of ``nat_gateway``, ``network_load_balancer``, ``public_ipv4``, ``eks`` and, on top of that,
        ``eks_extended``; or a month and GB of ``gp3``, ``ebs_snapshot``, ``efs`` and ``object_storage``."""

    def spot(self, region: str) -> SpotPrices | None:
        """The spot prices of the region; None while none are known."""

    def spot_history(self, region: str, name: str) -> Mapping[str, Sequence[tuple[str, float]]]:
        """Spot prices of a type in the last day, by the id of the zone: each moment at which the hourly refresh saw
        another price, the oldest first, and that price. Empty where none is known."""

    def versions(self, region: str) -> Sequence[ClusterVersion]:
        """The versions of the control planes that the cloud runs itself."""

    def why_unknown(self, region: str) -> str:
        """A sentence for people on a region of which no prices are known: that they are being fetched, or why not."""


class PriceRequests(Protocol):
    """Has the prices of a region fetched when somebody first names it. Nothing is raised: who names a region goes on
    without its prices."""

    def request(self, region: str) -> None:
        """Begin to fetch them in the background, unless prices of today are known or that began a short while ago. What
        the cloud does not have as a region is left alone."""

    def wait(self, region: str) -> None:
        """The same, and wait until they are there or could not be fetched, for some seconds at most."""


class PriceList(PublicPrices, Protocol):
    """The same as one tenant sees it, with what its own accounts were offered."""

    def sheet(self, account: int) -> bytes | None:
        """The last offer to the tenant's cloud account of that number, in the words of the cloud; None when nothing is
        known."""
