"""Port to a driver: clusters planned, checked, made and removed, with each intent on a ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Any, Protocol

from stockyard.domain.nodes.manifests import ProviderDocument
from stockyard.domain.pools.group_mapping import Group
from stockyard.domain.pools.records import NewPool
from stockyard.domain.records import Cluster, Resource
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.prices import PriceItem
from stockyard.ports.cloud_work import CloudWork
from stockyard.ports.clouds import PriceList
from stockyard.ports.snapshots import KeepsSnapshots


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a phase. Not ``done``: come again after ``wait_seconds``. ``facts`` are stored on the cluster."""

    done: bool
    message: str = ""
    wait_seconds: int = 15
    facts: Mapping[str, str] = field(default_factory=dict)
    remaining: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault found by a live check, at a JSON pointer. ``warning`` ones do not refuse."""

    pointer: str
    detail: str
    warning: bool = False
    dispensable: bool = False
    """Whether machines are made without what is missing, so that only a change of the field itself is refused."""


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """Plan of a driver for a cluster."""

    creates: tuple[tuple[str, str], ...]
    """Kind and name of each thing."""
    items: tuple[PriceItem, ...]
    remarks: tuple[Finding, ...] = ()
    """What somebody may want to know who decides by the plan; none refuses anything."""


class ShowsConsole(Protocol):
    """A driver that can read what the console of a cluster's first machine shows."""

    def console(self, work: CloudWork) -> str | None:
        """The text as the cloud has it, with whatever secrets the machine has printed; None when there is no machine.
        It may be empty: clouds show a console minutes late."""
        return None


SIGNATURE, TOKEN = "signature", "token"
"""How a machine proves which one it is: by a request that it signs with keys of its cloud, or by a secret in its user
data."""


class AttestsControlPlane(Protocol):
    """A driver that says how the machine of a control plane proves which one it is. Those of any other sign a
    request."""

    def attestation(self, cluster: Cluster) -> str:
        """``SIGNATURE`` or ``TOKEN``. With ``TOKEN`` the machine is told ``CloudWork.machine_token``."""
        return SIGNATURE


class BoundsNodes(Protocol):
    """A driver whose clusters have a network of pods that takes only so many nodes."""

    def most_nodes(self, cluster: Cluster) -> int | None:
        """Largest number of nodes that the cluster can have, its control plane among them. Makes no call."""
        return None


class ServesNodeGroups(Protocol):
    """A driver with named node groups in its clusters and with the providers for these groups."""

    def group_provider(self, cluster: Cluster, group: Group) -> ProviderDocument | None:
        """The provider of one worker group. Two documents of one name are equal, whatever clusters they are of: so a
        provider serves all groups whose documents have its name. Makes no call."""
        return None

    def group_items(self, cluster: Cluster, prices: PriceList) -> Sequence[PriceItem]:
        """Prices of the nodes that the groups have by themselves: those that they never go below, and more at first.
        Each has a claim once it is there, which is billed for itself. Makes no call."""
        return ()


class BillsEgress(Protocol):
    """A driver in whose cloud what leaves the network of a cluster is billed by the amount."""

    egress_usd: float | None = None
    """USD of a GB that leaves it, by the cloud's list; None where nothing is billed."""


class ShowsProvider(Protocol):
    """A driver whose clusters get nodes of providers that people register for their account."""

    provider_example: str | None = None
    """The path of the document of such a provider, among the examples; None where nodes come from groups alone."""


class LeavesZones(Protocol):
    """A driver whose clusters can leave a zone of their network. Operations see to it that nobody uses it any more."""

    def leaving_zones(self, work: CloudWork) -> Mapping[str, str]:
        """The zones that the network stands in and the cluster's settings no longer name, each with the pointer of the
        setting. The ledger tells: no cloud is asked."""
        return {}


class PlansChanges(Protocol):
    """A driver that calls parts of a cluster by letters, which a change must not give to others."""

    def things_of_change(self, before: Cluster, after: Cluster) -> tuple[Sequence[tuple[str, str]], ...] | None:
        """Things that ``plan`` makes for each of the two; letters mean the same in both. Makes no call."""
        return None


VIEWER, OPERATOR, ADMIN = "viewer", "operator", "admin"
"""What a person may do in a cluster: look, work in it, or everything."""


@dataclass(frozen=True, slots=True)
class ClusterToken:
    """Token that admits its bearer to a cluster's API until ``expires_at``."""

    token: str = field(repr=False)
    expires_at: datetime


class MintsTokens(Protocol):
    """A driver whose clusters admit people by short-lived tokens of the cloud, which are made when they are asked for
    and stored nowhere."""

    def mint(self, work: CloudWork, role: str) -> ClusterToken:
        """A new token of ``VIEWER``, ``OPERATOR`` or ``ADMIN``, for at most 15 minutes. Writes nothing."""
        ...

    def secret_name(self, cluster: Cluster) -> str:
        """Name of the Secret that holds the cluster's kubeconfig, wherever somebody puts it."""
        ...


PACKS_MANAGER = "stockyard-profile"
"""Under this name the fields of packs' objects are ours."""


class PacksApi(Protocol):
    """A cluster's API with the rights of one role. Objects are plain documents; errors are leaves of
    ``VendorError``, and ``VendorNotFound`` says that the cluster does not serve a kind, or has not the namespace."""

    def apply(
        self, document: Mapping[str, Any], *, manager: str = PACKS_MANAGER, dry_run: bool = False
    ) -> dict[str, Any]:
        """Server-side apply, by force. The object as it then is, with ``dry_run`` as it would be."""

    def get(self, api_version: str, kind: str, name: str, namespace: str = "") -> dict[str, Any] | None:
        """The object, or None."""

    def delete(self, api_version: str, kind: str, name: str, namespace: str = "") -> None:
        """Begin to delete the object; one that is gone is no error."""


class PacksAccount(Protocol):
    """A cluster's API, as the account knows it that applies packs. It may do nothing of itself."""

    def acting_as(self, rights: str) -> PacksApi:
        """The API with the rights of a role, ``ADMIN`` or ``OPERATOR`` of ``domain.profiles.pack_rights``. What they do
        not allow is ``PermissionDenied``."""

    def close(self) -> None: ...


class AdmitsPacks(Protocol):
    """A driver whose clusters can have profiles: it makes the account that applies packs, which is only there with a
    profile, and gives tokens of it that end within minutes."""

    def packs_api(self, work: CloudWork) -> PacksAccount:
        """The cluster's API as that account, which is made where it is missing."""
        ...

    def forget_packs(self, work: CloudWork) -> None:
        """Remove the account with its rights. Twice is once."""
        ...


class AdoptsNodes(Protocol):
    """A driver whose node groups may make machines by themselves: claims are made for them as they join."""

    def group_of_node(self, cluster: Cluster, node: Mapping[str, Any]) -> tuple[str, str] | None:
        """The pool and the machine's id of a node as the cluster's agent reports it; None for one of no group. Makes
        no call."""
        return None


GONE, DRAINING, HEALTHY = "gone", "draining", "healthy"
"""States of a member's machine: it has been ended; the balancer sends it no new requests; its API server answers."""


class BalancesMembers(Protocol):
    """A driver whose control planes may have several members, each a claim, behind a balancer."""

    def member_pool(self, cluster: Cluster) -> NewPool:
        """The pool of the members: who provides them, their types, taints and labels, but for the zone. Makes no
        call."""
        ...

    def member_zones(self, work: CloudWork) -> Sequence[str]:
        """The zones that members may stand in, those where they are wanted first."""
        ...

    def member_line(self) -> tuple[str, str]:
        """Kind and key of the line by which the source of nodes knows a claim's machine on the ledger."""
        ...

    def targets(self, work: CloudWork, machine_ids: Sequence[str]) -> Mapping[str, str]:
        """States that the balancer tells of the machines: ``HEALTHY``, ``unhealthy``, ``initial``, ``DRAINING``;
        ``GONE`` for one that has been ended. Those that it does not know are left out."""
        ...

    def admit(self, work: CloudWork, machine_id: str) -> None:
        """Let the balancer send requests to the machine, once its API server answers. Twice is once."""
        ...

    def withdraw(self, work: CloudWork, machine_id: str) -> None:
        """Let the balancer send no more requests to the machine. One that it does not know is no error."""
        ...

    def release_first(self, work: CloudWork) -> Outcome:
        """Remove what belonged to the cluster's first member, which is gone: its volume. What takes
        snapshots of members' disks stays."""
        ...


class TagsMembers(Protocol):
    """A driver whose members carry a tag in the cloud by which the cluster's own controllers know them."""

    tags_members: bool = False
    """Whether it is one."""

    def tag_members(self, work: CloudWork, machine_ids: Sequence[str]) -> str | None:
        """Give the tag to machines from an earlier release that do not have it. Why that cannot be, and what to do;
        None when all that are there have it. Machines that are gone are no error."""
        return None


@dataclass(frozen=True, slots=True)
class GonePart:
    """A part of a cluster that the ledger has as made and the cloud has not. ``line`` is its line, ``name`` what people
    call it; ``is_given``: it is the tenant's own, and nothing of ours makes it again."""

    line: Resource
    name: str
    is_given: bool = False


class LooksAtParts(Protocol):
    """A driver that can say of lines of the ledger whether what they name is still there."""

    looks_at_parts: bool = False
    """Whether it is one."""

    def gone_parts(self, work: CloudWork, lines: Sequence[Resource]) -> Sequence[GonePart]:
        """Parts among these made lines that are gone, found by a call for each. What the cloud may still hide, and what
        we may not look at, counts as there. Writes nothing. Raises other ``VendorError`` leaves: then nothing is
        known."""
        return ()


class Upgrades(Protocol):
    """A driver that can bring a ready cluster to the next minor of Kubernetes: by the phases of its rows, which bring
    what stands to the record."""

    def upgrade_findings(self, work: CloudWork) -> Sequence[Finding]:
        """Findings of the cloud that speak against the upgrade: interfaces in use that the version has no more, nodes
        that are too old for it, by the pointer ``/kubernetes_version``. ``work.cluster`` has the wanted version
        already; nothing is found where what stands has it too. Writes nothing."""
        return ()


class Retags(Protocol):
    """A driver that can change the tags of what stands in the cloud for a cluster, the machines of its nodes
    included."""

    retags: bool = False
    """Whether it is one."""

    def retag(self, work: CloudWork, stale_keys: Sequence[str]) -> Outcome:
        """Look at everything, and give it the cluster's tags where it lacks them or has others; take the
        ``stale_keys`` from it. What we or the cloud set ourselves stays as it is, also under a key that is named.

        Run twice, the second run changes nothing. What goes meanwhile is no error.
        """
        return Outcome(True, "Nothing in the cloud carries the cluster's tags.")


class ClusterDriver(
    ShowsConsole,
    AttestsControlPlane,
    BoundsNodes,
    ServesNodeGroups,
    BillsEgress,
    ShowsProvider,
    LeavesZones,
    PlansChanges,
    AdoptsNodes,
    TagsMembers,
    LooksAtParts,
    Upgrades,
    Retags,
    Protocol,
):
    """One way to make clusters in a cloud. Phase names are those of the workflow documents. What only some can do has a
    default: that of a driver that cannot."""

    @property
    def minter(self) -> MintsTokens | None:
        """Itself as one that makes tokens; None where people log in to clusters in the realm."""
        return None

    @property
    def packs_admin(self) -> AdmitsPacks | None:
        """Itself as one whose clusters can have profiles; None where they cannot."""
        return None

    @property
    def balancer(self) -> BalancesMembers | None:
        """Itself as one whose control planes may have several members; None where they have one."""
        return None

    @property
    def snapshot_keeper(self) -> KeepsSnapshots | None:
        """Itself as one that keeps snapshots of etcd in its cloud; None where there are none."""
        return None

    def validate(self, cluster: Cluster, prices: PriceList) -> Sequence[Finding]:
        """The faults that names, settings and the catalogue show. Makes no call."""

    def plan(self, cluster: Cluster, prices: PriceList) -> ClusterPlan:
        """Plan of what a creation makes, and what is billed while the cluster stands, without its workers. Makes no
        call."""

    def inspect(self, work: CloudWork) -> Sequence[Finding]:
        """Live checks of the settings (key pair, types, VPC, subnet). ``CredentialsRevoked`` when not reachable. Of a
        cluster that is ``ready`` already they are of a change: what it has is there, and needs no room."""

    def ensure(self, phase: str, work: CloudWork) -> Outcome:
        """Bring the phase's resources about. Run twice, the second run changes nothing."""

    def remove(self, phase: str, work: CloudWork) -> Outcome:
        """Remove what the phase made, found by ledger line or, for lines that are only intended, by token and tags."""
