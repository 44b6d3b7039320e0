"""Facts about a kind of node provider from its documents alone, and the table of all kinds.

Each kind is described by its provider's own folder. The composition root hands the descriptions over before the first
document is read, so this room knows no provider by name. The table never changes in the life of a process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.spelling import closest

if TYPE_CHECKING:
    from stockyard.domain.nodes.node_types import Offering

Document = Mapping[str, Any]
Quantities = dict[str, str | float]


def written_resources(_block: Document, entry: Document) -> Quantities:
    """The resources of a node type as its entry in the document has them."""
    return dict(entry.get("resources") or {})


def written_limit(entry: Document) -> int | None:
    """Largest number of nodes of a type, as its entry has it; None: any number."""
    limit: int | None = entry.get("maxCapacity")
    return limit


@dataclass(frozen=True, slots=True)
class AccountReference:
    """Reference of a provider's block to whose rights its machines are made with.

    ``name`` is the number or the name of a cloud account. ``field`` leads to it from the block. Where ``takes_cluster``
    it may also be the id or the name of a cluster of the tenant, whose administrator Stockyard is.
    """

    name: str
    field: tuple[str, ...]
    takes_cluster: bool = False


def written_account(block: Document) -> AccountReference | None:
    """The account that the block's ``cloudAccount`` has; None where it has none."""
    written = block.get("cloudAccount")
    return None if written is None else AccountReference(str(written), ("cloudAccount",))


def host_cluster(block: Document) -> AccountReference | None:
    """The account or the cluster that the block's published ``clusterRef`` has."""
    written = (block.get("clusterRef") or {}).get("cluster")
    return None if not written else AccountReference(str(written), ("clusterRef", "cluster"), takes_cluster=True)


def secret_account(block: Document) -> AccountReference | None:
    """The account that holds what the published ``secretRef`` would: the one of the secret's name."""
    written = (block.get("secretRef") or {}).get("name")
    return None if not written else AccountReference(str(written), ("secretRef", "name"))


def written_region(block: Document) -> str | None:
    """The region that the block has; None where its kind has none."""
    return block.get("region") or None


def loaded(reference: str) -> type[Any]:
    """The model that ``module:Class`` names."""
    module, _, name = reference.partition(":")
    model: type[Any] = getattr(import_module(module), name)
    return model


@dataclass(frozen=True, slots=True)
class LabelDomain:
    """A domain of labels that belongs to a vendor, and every label of it that nodes can be chosen by."""

    name: str
    known_labels: frozenset[str]


@dataclass(frozen=True, slots=True)
class ProviderKind:
    """A kind of node provider. ``name`` is also the name of the block of its documents.

    ``model`` names what the block is checked by, as ``module:Class``: it is loaded when it is used. ``own``: only our
    own manifests have this kind. ``built``: nodes of it can join; documents of the other kinds are stored, and their
    claims wait. ``discovers``: its node types come from a catalogue, and the document has only what differs. ``cloud``
    is the cloud of the account that ``account`` finds in the block: no account of another cloud has that number or name
    for it. ``offerings`` reads prices and zones from a node type's entry.
    """

    name: str
    model: str
    own: bool = False
    built: bool = False
    discovers: bool = False
    owned: bool = False
    """Its machines are there anyway: a node of them costs nothing more, unless its owner says a price."""
    cloud: str = ""
    cloud_title: str = ""
    """The cloud as people write it."""
    account: Callable[[Document], AccountReference | None] = written_account
    """Of the block; None where its machines need no account. Use cases ask ``cloud_accounts.of_provider``."""
    takes_only_account: Callable[[Document], bool] = lambda _: False
    """Whether a block that names no account works in the tenant's only one of the cloud."""
    region: Callable[[Document], str | None] = written_region
    """Of the block, for the lines of the ledger; None where the cloud has no regions."""
    resources: Callable[[Document, Document], Quantities] = written_resources
    limit: Callable[[Document], int | None] = written_limit
    offerings: Callable[[Mapping[str, str], Document], tuple[Offering, ...] | None] = lambda *_: None
    """Of the provider's properties and a node type's entry; None: one offering on demand, in the type's zones."""
    label_domain: LabelDomain | None = None
    """Whose labels other than the known ones are refused in pools."""

    def block(self) -> type[Any]:
        """The model that the block is checked by."""
        return loaded(self.model)


class _Table:
    kinds: Mapping[str, ProviderKind] = {}


def use(kinds: Mapping[str, ProviderKind]) -> None:
    """Take these kinds as the ones that there are. Called once in a process, by who knows the providers."""
    _Table.kinds = kinds


def label_domains() -> tuple[LabelDomain, ...]:
    """The domains of labels of all kinds, each once."""
    return tuple(dict.fromkeys(kind.label_domain for kind in _Table.kinds.values() if kind.label_domain is not None))


def unknown_label(key: str) -> str | None:
    """Message that a label of a vendor's domain is unknown to the vendor, with the one that was probably meant; None
    for all other labels."""
    domain, slash, name = key.rpartition("/")
    for restricted in label_domains() if slash else ():
        is_within = domain == restricted.name or domain.endswith(f".{restricted.name}")
        if is_within and key not in restricted.known_labels:
            by_name = {label.rpartition("/")[2]: label for label in restricted.known_labels}
            likely = by_name.get(closest(name, sorted(by_name)))
            hint = f"; did you mean {likely}?" if likely else ""
            return f'label domain "{restricted.name}" is restricted, and no node has this label{hint}'
    return None


def names() -> tuple[str, ...]:
    """The names of all kinds, our own first."""
    return tuple(sorted(_Table.kinds, key=lambda name: not _Table.kinds[name].own))


def kind(name: str) -> ProviderKind:
    """The kind of that name. Raises ``KeyError``."""
    return _Table.kinds[name]
