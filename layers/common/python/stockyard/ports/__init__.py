"""What the product needs from outside, as protocols. A method's docstring is its contract; one suite in
``tests/contracts`` runs on every implementation of a port.

Vendor failures come out as ``stockyard.errors.VendorError`` leaves, store failures as ``StoreError`` leaves.
"""

from __future__ import annotations

from stockyard.domain.writes import Add, Check, Create, Put, Remove, Replace, Write
from stockyard.ports.clouds import (
    AccountVerifier,
    CloudWork,
    ClusterProvider,
    Finding,
    Ledger,
    Outcome,
    PriceList,
    Skipped,
    Tagged,
)
from stockyard.ports.services import (
    EVENTS_AT_ONCE,
    Bus,
    Clock,
    Deployer,
    Identity,
    IdentityClient,
    MachineIdentity,
    Prover,
    Secrets,
    Workflows,
)
from stockyard.ports.table import Page, Registry, Store

# What a transaction is made of belongs to the port, for those who use it. Nodes' ports are in ``ports.nodes``, so that
# a function that knows no nodes does not load them.
__all__ = [
    "EVENTS_AT_ONCE",
    "AccountVerifier",
    "Add",
    "Bus",
    "Check",
    "Clock",
    "CloudWork",
    "ClusterProvider",
    "Create",
    "Deployer",
    "Finding",
    "Identity",
    "IdentityClient",
    "Ledger",
    "MachineIdentity",
    "Outcome",
    "Page",
    "PriceList",
    "Prover",
    "Put",
    "Registry",
    "Remove",
    "Replace",
    "Secrets",
    "Skipped",
    "Store",
    "Tagged",
    "Workflows",
    "Write",
]
