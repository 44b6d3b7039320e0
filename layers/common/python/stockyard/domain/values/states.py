"""The states that records may have. A comparison with any other text is an error of types."""

from __future__ import annotations

from typing import Literal

Truth = Literal["True", "False", "Unknown"]
ShownClusterStatus = Literal["preparing", "ready", "failed", "deleting"]
ClusterStatus = Literal["accepting", "undoing", ShownClusterStatus]
OperationStatus = Literal["queued", "running", "succeeded", "failed", "cancelled", "reverted"]
PhaseState = Literal["pending", "running", "succeeded", "failed", "skipped"]
ReadyPhase = Literal["Pending", "Available", "Failed"]
ResourceState = Literal["intended", "made", "gone"]
LaunchGroupState = Literal["open", "intended", "made"]
DisruptionState = Literal["Idle", "Proposed", "Replacing"]
RepaveState = Literal["None", "Pending", "Approved", "Reverted"]
RequestState = Literal["running", "done"]
Verification = Literal["unverified", "verified", "failed"]
Power = Literal["On", "Off"]
"""Whether the machine of the node runs."""
DesiredPower = Literal["On", "Off", "Reboot"]
PoolKind = Literal["static", "dynamic"]
MachineState = Literal["absent", "starting", "running", "stopped", "gone"]
