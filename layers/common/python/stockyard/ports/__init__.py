"""Ports to everything that the product needs from outside, as protocols. A method's docstring is its contract; one
suite in ``tests/contracts`` runs on every implementation of a port.

Vendor failures come out as ``stockyard.errors.VendorError`` leaves, store failures as ``StoreError`` leaves.

What a transaction is made of belongs to the port, for those who use it. A module is loaded when a name of it is first
used, and nodes' ports are not here but in ``ports.nodes``, so that a cold start pays for what its function calls.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stockyard.domain.writes import Add, Check, Create, Put, Remove, Replace, Write
    from stockyard.ports.cloud_work import CloudWork, Ledger
    from stockyard.ports.clouds import (
        Cloud,
        LedgerThings,
        PriceList,
        PriceRequests,
        PublicPrices,
        SellsByAccount,
        Skipped,
        Tagged,
        Verification,
    )
    from stockyard.ports.clusters import (
        ClusterDriver,
        ClusterPlan,
        Finding,
        Outcome,
        Retags,
        ShowsConsole,
    )
    from stockyard.ports.services import (
        EVENTS_AT_ONCE,
        Background,
        Bus,
        Clock,
        Deployer,
        Identity,
        IdentityClient,
        MachineAttestor,
        MachineIdentity,
        ObjectStorage,
        Secrets,
        Telemetry,
        Workflows,
    )
    from stockyard.ports.table import Page, RecordChange, Registry, Store

_MODULES = ("domain.writes", "ports.table", "ports.services", "ports.clouds", "ports.cloud_work", "ports.clusters")


def __getattr__(name: str) -> Any:
    for module in _MODULES if name[0].isupper() else ():
        if name in (names := vars(import_module(f"stockyard.{module}"))):
            return globals().setdefault(name, names[name])
    raise AttributeError(name)
