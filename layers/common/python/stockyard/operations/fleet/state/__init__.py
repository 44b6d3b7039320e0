"""State of a cluster's nodes: the one view that scale-up, consolidation, preview, plans and placements read.

A node that has joined is what its cluster's agent reports; its claim and the catalogue speak only until then.
"""

from stockyard.operations.fleet.state.fleet_nodes import FleetNode, FleetState, fleet_state
from stockyard.operations.fleet.state.usage import usage_view
from stockyard.operations.fleet.state.workload import PendingGroup, Workload, workload_of

__all__ = ["FleetNode", "FleetState", "PendingGroup", "Workload", "fleet_state", "usage_view", "workload_of"]
