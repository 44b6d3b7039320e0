"""Port to a source of nodes. A new provider is a copy of the simulated one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from stockyard.domain.nodes.node_types import NodeType
from stockyard.domain.records import (
    CloudAccount,
    Cluster,
    NodeClaim,
    NodeEnvironment,
    NodeProvider,
    Placement,
)
from stockyard.domain.values.conditions import Condition
from stockyard.domain.values.requirements import Requirement
from stockyard.domain.values.states import DesiredPower
from stockyard.errors import NodeCouldNotBeProvisioned, VendorRefused
from stockyard.ports.clouds import Tagged
from stockyard.ports.clusters import SIGNATURE, Finding, Outcome
from stockyard.ports.node_work import EnvironmentWork, Machine, NewNode, NodeWork, PlannedRun, RunTimes, TemplateSource

BLOCKER = "blocker"
"""The fact of a launch that is not done: what its vendor says is in its way."""


class LaunchesTogether(Protocol):
    """A source that launches several equal claims by one call. Then it is told their ``group``."""

    def together(self, provider: NodeProvider, capacity_type: str, properties: Mapping[str, str]) -> int:
        """Number of equal claims with these properties that one call takes at most; 1: each is launched alone."""
        return 1


class TakesFromGroups(Protocol):
    """A source whose machines come out of groups that its vendor fills. Then it is told the ``holds``."""

    takes_from_groups: bool = False
    """Whether it is one."""

    def group(self, provider: NodeProvider, claim: NodeClaim) -> str | None:
        """The group by the name that is unique among those of the claim's cluster. Makes no call."""
        return None


class TakesHosts(Protocol):
    """A source whose machines are hosts that are there anyway, each for one claim. Then it is told the ``holds`` of
    their inventory, so that one claim of the tenant has a host, whatever accounts, providers or clusters lead to it."""

    def host_inventory(self, provider: NodeProvider, account: CloudAccount | None) -> str | None:
        """Name of the inventory in which hosts have their ids. Makes no call."""
        return None

    def hosts_of_types(self, provider: NodeProvider) -> Sequence[Finding]:
        """Remarks for a dry run, one for each node type of the document: the names of the hosts that may be wiped,
        installed and switched, and of those that are left alone. Makes no call."""
        return ()


class Attests(Protocol):
    """A source with a way for its machines to prove their identity. The machines of any other sign a request."""

    def attestation(self, provider: NodeProvider) -> str:
        """``SIGNATURE`` or ``TOKEN``. With ``TOKEN`` each machine has user data of its own, and is told its token by
        ``NodeWork.machine_token``; so no such source launches claims together."""
        return SIGNATURE


class HasTopology(Protocol):
    """A source whose machines stand in a network of their own: it knows which clusters and zones they reach."""

    has_topology: bool = False
    """Whether it is one."""

    def location(self, provider: NodeProvider) -> tuple[str, str] | None:
        """Region and cloud account of the machines. They stay as long as the provider has any."""
        return None

    def out_of_reach(self, provider: NodeProvider, cluster: Cluster | None) -> str | None:
        """Reason why a machine could not reach the cluster, if there is one; None when it can."""
        return None

    def out_of_zone(
        self, provider: NodeProvider, environment: NodeEnvironment | None, requirement: Requirement
    ) -> str | None:
        """Reason why no machine can stand in a zone as asked for; None when one can, or may."""
        return None

    def zones(self, provider: NodeProvider, environment: NodeEnvironment | None) -> frozenset[str]:
        """The zones in which machines can stand; empty while that is not known."""
        return frozenset()


class JoinsOverlay(Protocol):
    """A source whose machines take part in the overlay of their cluster. Those of any other are out of reach of a
    cluster that has one."""

    joins_overlay: bool = False
    """Whether it is one."""


class NeedsImages(Protocol):
    """A source whose machines start from images, of which a location may have none for an architecture."""

    needs_images: bool = False
    """Whether it is one."""

    def architectures(self, provider: NodeProvider, environment: NodeEnvironment | None) -> frozenset[str]:
        """The architectures, by Kubernetes' names, for which there is an image; empty while that is not known."""
        return frozenset()


class NamesZones(Protocol):
    """A source whose prices differ by zone, while accounts have names of their own for zones."""

    zone_id_label: str | None = None
    """The label by which its nodes tell the id of their zone; None of any other source."""

    def zone_ids(self, provider: NodeProvider, environment: NodeEnvironment | None) -> Mapping[str, str]:
        """The ids of the zones in which machines can stand, by name; empty while they are not known."""
        return {}


class TracksPrices(Protocol):
    """A source some of whose prices move. With new ones the node types of a provider are others."""

    def prices_as_of(self, provider: NodeProvider) -> str | None:
        """Moment when the prices that move were last refreshed; None where none are known, or none move."""
        return None


class Drifts(Protocol):
    """A source that decides itself whether a node could still be had as it was launched.

    Of others the node type that the document declares decides.
    """

    def still_offers(self, provider: NodeProvider, placement: Placement) -> bool | None:
        """Whether the document still lets the type, capacity type and zone through; None where the declared type
        decides."""
        return None


class Compares(Protocol):
    """A source whose vendor has to be asked whether a machine is as it would be made now: by a plan of a template, or
    by reading what stands. Each machine is compared once a day, and when its template has another fingerprint."""

    compares: bool = False
    """Whether it is one."""

    def template_fingerprint(self, provider: NodeProvider) -> str | None:
        """Fingerprint of what the machines are made from, such as the commit of a template. Makes no call."""
        return None

    def drift(self, work: NodeWork) -> str | None:
        """Differences between the claim's machine and a new one, in words for people and without values of secrets;
        None for none. Changes nothing. Raises ``VendorError`` where that cannot be told now."""
        return None


class FollowsTemplates(Protocol):
    """A source whose templates may come from sources that move. What each is at the provider's record says."""

    def template_sources(self, provider: NodeProvider) -> Sequence[TemplateSource]:
        """The sources of the provider's templates that may move. Makes no call."""
        return ()

    def newest(self, template: TemplateSource) -> str:
        """Revision that the source is at now. Raises ``VendorError`` where that cannot be told."""
        raise VendorRefused("templates of this kind do not move", code="NoTemplates")

    def moved(self, work: NodeWork) -> str | None:
        """From and to which revision the source of the claim's template has moved since the machine was made, as a
        sentence; None where it has not, or that is not known. Asks no vendor."""
        return None


class MakesByRuns(Protocol):
    """A source whose nodes are made by programs, on machines of the tenant's that are paid by the minute."""

    makes_by_runs: bool = False
    """Whether it is one."""

    def run_times(self, provider: NodeProvider, type_name: str) -> RunTimes | None:
        """Times of the runs for one node of a type by its bare name; None where the tenant does not pay for them. Makes
        no call."""
        return None

    def planned_run(self, node: NewNode) -> PlannedRun:
        """The run that would make the node, for who wants to try it. Makes no call. ``NodeCouldNotBeProvisioned`` where
        no run could be made."""
        raise NodeCouldNotBeProvisioned("No run makes nodes of this kind.")


class JudgesTemplates(Protocol):
    """A source whose vendor tells, before the first machine, whether machines can be made from a provider's document:
    by a trial that makes nothing. Asked when a provider is registered, changed or planned."""

    judges_templates: bool = False
    """Whether it is one."""

    def judge(
        self, provider: NodeProvider, account: CloudAccount | None, host: Cluster | None, tenant: str
    ) -> Sequence[Finding]:
        """Faults that the vendor finds, each at the place where the document has it. Changes nothing. Raises
        ``VendorError`` where that cannot be told now."""
        return ()


class Discovers(Protocol):
    """A source whose node types come from offers that the installation refreshes."""

    def sheet(self, provider: NodeProvider) -> str | None:
        """The sheet of offers that the provider's types come from: a region; None where they come from none."""
        return None


class CountsStock(Protocol):
    """A source of machines that are counted: so many of a type there are, and no more can be made. With
    ``NodeSource.with_sheet`` the count comes from the account's sheet.

    Where there is a count each of its types is limited, by its total or by the document's ``maxCapacity`` where that is
    less. Somebody else may have taken a machine since the count: then a launch raises ``InsufficientCapacity``, and the
    claim waits again.
    """

    counts_stock: bool = False
    """Whether it is one."""

    def totals(self, provider: NodeProvider) -> Mapping[str, int] | None:
        """Number of machines of each type by the type's bare name, those in use among them. There is none of a type
        that is absent; None where nobody can count, and the document's ``maxCapacity`` alone limits. Makes no call."""
        return None

    def counted_at(self, provider: NodeProvider) -> str | None:
        """Moment of the count, RFC 3339; None where nothing has been counted yet. Makes no call."""
        return None


class LaunchesSlowly(Protocol):
    """A source whose machines may need longer than the stage allows."""

    def limits(self, provider: NodeProvider) -> Mapping[str, int]:
        """Seconds that the provider may take: by ``environment``, ``launch``, ``register``, ``drain``, ``terminate``
        and ``power``.

        One that is absent, or shorter than the stage's, is the stage's; but for a drain none is longer than
        ``SLOWEST_SECONDS`` of ``lifecycle.nodes.node_phases``, four hours. Makes no call.
        """
        return {}


class Switches(Protocol):
    """A source that can switch its machines. Of others a switch is refused before an operation begins."""

    switches: bool = False
    """Whether it is one."""

    def power(self, work: NodeWork, state: DesiredPower) -> Outcome:
        """Bring the machine to ``On`` or ``Off``, or ``Reboot`` it once."""
        raise VendorRefused("machines of this kind are not switched", code="NotSwitched")


class EndsMachines(Protocol):
    """A source whose machines may stand in room that was bought for a time."""

    def ends_at(self, work: NodeWork) -> str | None:
        """Moment when the vendor ends the claim's machine for that, RFC 3339; None where it does not."""
        return None


class Reserves(Protocol):
    """A source with the reserved resources of its node types, so that a kubelet can reserve the same."""

    def kubelet_args(self, provider: NodeProvider, placement: Placement) -> Mapping[str, str]:
        """Flags of the kubelet by name: how many pods the type takes, and what it keeps from them. None of a
        type that is no longer known. Makes no call."""
        return {}


class TellsStages(Protocol):
    """A source that sets environments up in stages, and knows how each stands."""

    tells_stages: bool = False
    """Whether it is one."""

    def environment_conditions(self, work: EnvironmentWork) -> Sequence[Condition]:
        """Conditions of the environment as they are now, with ``work.now`` as their time. One of a type whose name ends
        with ``Synced`` is False where what stands is not what the provider's document says. Asks no vendor."""
        return ()


class GrowsOld(Protocol):
    """A source that has to look again after a while for what ``prepare`` has found."""

    def is_stale(self, environment: NodeEnvironment, provider: NodeProvider, now: datetime) -> bool:
        """Whether the environment's outputs are to be found again before the next machine is made. Makes no call."""
        return False


class ShowsNodeConsole(Protocol):
    """A source that can read what the console of a claim's machine shows."""

    def console(self, work: NodeWork) -> str | None:
        """As ``ports.clusters.ShowsConsole.console``."""
        return None


class NodeSource(
    LaunchesTogether,
    TakesFromGroups,
    TakesHosts,
    Attests,
    HasTopology,
    JoinsOverlay,
    NeedsImages,
    NamesZones,
    TracksPrices,
    Drifts,
    Compares,
    FollowsTemplates,
    MakesByRuns,
    JudgesTemplates,
    Discovers,
    CountsStock,
    LaunchesSlowly,
    Switches,
    EndsMachines,
    Reserves,
    TellsStages,
    GrowsOld,
    ShowsNodeConsole,
    Protocol,
):
    """One kind of node provider. What only some can do has a default: that of a source that cannot.

    ``launch`` raises ``InsufficientCapacity`` with what was refused; everything else that fails for good is another
    ``VendorError`` leaf.
    """

    def node_types(self, provider: NodeProvider, account: CloudAccount | None) -> Sequence[NodeType]:
        """The node types on offer, with offerings and prices: from the record and the catalogue, no cloud call."""

    sells_from_sheet: bool = False
    """Whether the node types are what the provider's cloud account was last offered."""

    def with_sheet(self, sheet: bytes | None) -> NodeSource:
        """The source with that sheet, see ``ports.clouds.SellsByAccount``: its node types and findings come from it.
        With None, as a source is by itself, there are no node types. Makes no call."""
        return self

    def scope(self, provider: NodeProvider, account: CloudAccount | None) -> str:
        """Scope of a refused capacity: a cloud's region, shared by all tenants, or the provider alone."""

    def inspect(self, provider: NodeProvider, account: CloudAccount | None) -> Sequence[Finding]:
        """Faults of a provider's document beyond its form; no cloud call."""

    def prepare(self, work: EnvironmentWork) -> Outcome:
        """Set up what the provider needs once for a cluster. Run twice, the second run changes nothing. Facts become
        the environment's outputs, all of them anew each time; a ``Prepared`` has further ones."""

    def launch(self, work: NodeWork) -> Outcome:
        """Make the claim's machine, by the placement's options in order. Facts: ``machine_id``, ``type``,
        ``capacity_type``, ``zone``, ``reserved_until`` as ``EndsMachines.ends_at`` says it, and ``PASSED_OVER`` where
        it knows more than that an earlier option could not be had; before it is done ``BLOCKER``. Run twice it finds
        the machine of the first run."""

    def look(self, work: NodeWork) -> Machine:
        """The claim's machine as it is now."""

    def glance(self, work: NodeWork) -> Machine:
        """The machine as it was up to a minute ago, where a source asks its vendor once for many. That one is gone is
        sure."""
        return self.look(work)

    def terminate(self, work: NodeWork) -> Outcome:
        """Remove the machine and everything that was made for it alone, found by ledger line, token and tags."""

    def clear(self, work: EnvironmentWork) -> Outcome:
        """Remove what ``prepare`` set up for the cluster."""

    def tagged(self, provider: NodeProvider, installation: str, tenant: str) -> Sequence[Tagged]:
        """Every machine that carries our tags and that no cluster provider's sweep sees (for the sweep)."""

    def discard(self, provider: NodeProvider, thing: Tagged, tenant: str) -> bool:
        """Remove one orphan; True when it is gone."""
