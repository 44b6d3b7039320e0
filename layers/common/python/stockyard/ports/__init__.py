"""What the product needs from outside, as protocols. A method's docstring is its contract; one suite in
``tests/contracts`` runs on every implementation of a port.

Vendor failures come out as ``stockyard.errors.VendorError`` leaves, store failures as ``StoreError`` leaves.
"""

from __future__ import annotations

from stockyard.domain.writes import Add, Check, Create, Put, Remove, Replace, Write
from stockyard.ports.clouds import Cloud, PriceList, Skipped, Tagged, Verification
from stockyard.ports.clusters import CloudWork, ClusterDriver, ClusterPlan, Finding, Ledger, Outcome
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
    Secrets,
    Telemetry,
    Workflows,
)
from stockyard.ports.table import Page, RecordChange, Registry, Store

# What a transaction is made of belongs to the port, for those who use it. Nodes' ports are in ``ports.nodes``, so that
# a function that knows no nodes does not load them.
