"""Descriptors of providers' folders: each folder has one ``DESCRIPTOR``, and loading it loads no vendor's SDK."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stockyard.domain.cloud_kinds import CloudKind, ClusterKind
from stockyard.domain.nodes.offers import RegionOffers, SpotPrices
from stockyard.domain.nodes.provider_kinds import ProviderKind
from stockyard.errors import VendorRefused
from stockyard.ports import Cloud, ClusterDriver, Secrets, Store
from stockyard.ports.nodes import NodeSource
from stockyard.ports.runs import Runs

if TYPE_CHECKING:
    import httpx


def _no_sites(_tenant: str, site: str) -> httpx.BaseTransport:
    raise VendorRefused(f"site {site} cannot be reached from here", code="NoSites")


def _no_runs(tenant: str) -> Runs:
    raise VendorRefused(f"tenant {tenant} has no runs here", code="NoRuns")


@dataclass(frozen=True, slots=True)
class ProviderTools:
    """Tools from which clouds and cluster drivers may be made."""

    settings: Any
    """The installation's, see ``stockyard.settings``."""
    secrets: Callable[[], Secrets]
    """Of accounts and clusters; asked for when a secret is needed."""
    site_transport: Callable[[str, str], httpx.BaseTransport] = field(default=_no_sites, kw_only=True)
    """The way to the site of a tenant: of its name a transport, see ``providers.sites``."""


@dataclass(frozen=True, slots=True)
class CloudDescriptor:
    """A kind of cloud account. Its folder's name is the account's ``provider``."""

    kind: CloudKind
    make: Callable[[ProviderTools], Cloud]


@dataclass(frozen=True, slots=True)
class ClusterDriverDescriptor:
    """A way to make clusters. Its folder's name is the ``driver`` on a cluster's record."""

    kind: ClusterKind
    """One driver makes the clusters of a type in a cloud."""
    make: Callable[[ProviderTools], ClusterDriver]


@dataclass(frozen=True, slots=True)
class SourceTools(ProviderTools):
    """Tools from which a source of nodes may be made besides."""

    store_of: Callable[[str], Store]
    """A tenant's records."""
    offers: Callable[[str], RegionOffers | None]
    """What is known of a region's offers; None when nothing is."""
    spot: Callable[[str], SpotPrices | None] = lambda _region: None
    """What is known of a region's spot prices; None when nothing is."""
    runs_of: Callable[[str], Runs] = _no_runs
    """A tenant's runs of providers' own programs."""


@dataclass(frozen=True, slots=True)
class NodeSourceDescriptor:
    """A kind of node provider. ``make`` is None while its nodes are not built."""

    kind: ProviderKind
    make: Callable[[SourceTools], NodeSource] | None = None
