"""Which worker runs what, and in which order: what takes longest comes first, so that all workers end together.

A file is a unit of work, as with ``--dist loadfile``; files that need one expensive thing are one unit, so that it is
made once.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

KEYCLOAK = "a real Keycloak"
SERVED, PRIVILEGE = "the served local cloud", "a served local cloud whose calls are judged"
API = "tests/api/one_cloud"
STACKS = "a synthesized stage"
REAL = "a real control plane"
UNITS = {
    "tests/contracts/test_identity.py": KEYCLOAK,
    "tests/contracts/test_keycloak_wire.py": KEYCLOAK,
    "tests/e2e/test_keycloak.py": KEYCLOAK,
    "tests/e2e/test_claims.py": SERVED,
    "tests/e2e/test_cudo_life.py": SERVED,
    "tests/e2e/test_day.py": SERVED,
    "tests/e2e/test_ec2_nodes.py": PRIVILEGE,
    "tests/e2e/test_eks_life.py": SERVED,
    "tests/e2e/test_first_uses.py": SERVED,
    "tests/e2e/test_life.py": PRIVILEGE,
    "tests/stacks/test_least_privilege.py": PRIVILEGE,
    "tests/e2e/test_member_room.py": SERVED,
    "tests/e2e/test_pods_to_nodes.py": SERVED,
    "tests/e2e/test_races.py": SERVED,
    "tests/e2e/test_reference.py": SERVED,
    "tests/e2e/test_restore.py": SERVED,
    "tests/e2e/test_sdk_page.py": SERVED,
    "tests/e2e/test_zones.py": SERVED,
    **{f"tests/kubernetes/test_{name}.py": REAL for name in ("agent", "api", "connection", "contract")},
    **{f"tests/kubernetes/test_{name}.py": REAL for name in ("control_plane", "join", "kubeadm")},
    "tests/stacks/test_cost.py": STACKS,
    "tests/stacks/test_data_stack.py": STACKS,
    "tests/stacks/test_permissions.py": STACKS,
    "tests/stacks/test_service_stack.py": STACKS,
    "tests/stacks/test_synth.py": STACKS,
}
SECONDS = {
    SERVED: 290,
    PRIVILEGE: 260,
    "tests/kubernetes/day/test_day.py": 250,
    REAL: 75,
    "tests/kubernetes/test_served.py": 70,
    KEYCLOAK: 80,
    API: 100,
    "tests/e2e/test_readme.py": 77,
    "tests/api/test_schemathesis.py": 74,
    "tests/local/test_cloud.py": 57,
    "tests/e2e/test_canary.py": 50,
    "tests/kubernetes/test_keycloak.py": 45,
    "tests/local/test_new_provider.py": 45,
    STACKS: 40,
    "tests/local/test_interruption.py": 25,
    "tests/local/test_fault_plan.py": 16,
    "tests/unit/machines/test_start_scripts.py": 14,
    "tests/workflows/test_node_group_crash_matrix.py": 14,
    "tests/workflows/test_crash_matrix.py": 12,
    "tests/workflows/test_eks_cluster_crash_matrix.py": 12,
    "tests/client/cli/test_process.py": 12,
    "tests/workflows/test_group_crash_matrix.py": 11,
    "tests/unit/agent/test_crashes.py": 10,
    "tests/local/corrections/compute/test_interfaces.py": 10,
    "tests/conformance/test_run.py": 9,
    "tests/workflows/test_crash_judge.py": 8,
    "tests/local/corrections/test_refusals.py": 8,
    "tests/contracts/test_node_source.py": 7,
    "tests/unit/agent/test_process.py": 7,
    "tests/properties/test_consolidation.py": 6,
    "tests/properties/test_packing.py": 6,
    "tests/unit/providers/clusters/ec2/test_provider.py": 6,
    "tests/local/corrections/test_retention.py": 6,
    "tests/local/corrections/compute/test_spot_prices.py": 5,
    "tests/local/corrections/quick/test_answers.py": 5,
    "tests/local/test_inprocess.py": 5,
    "tests/contracts/test_cluster_driver.py": 5,
    "tests/workflows/test_disruption_crash_matrix.py": 5,
    "tests/workflows/test_ec2_member_crash_matrix.py": 5,
    "tests/workflows/test_member_crash_matrix.py": 5,
    "tests/workflows/test_pool_crash_matrix.py": 5,
    "tests/workflows/test_direct_aws.py": 4,
    "tests/workflows/test_node_crash_matrix.py": 4,
    "tests/workflows/test_simulated_hours.py": 4,
    "tests/workflows/test_hours_with_people.py": 12,
    "tests/unit/scheduling/simulation/test_replay.py": 4,
}
"""About how long the longest take on a machine that does nothing else; of the others, ``EACH`` a test."""
EACH = 0.05


def unit(nodeid: str) -> str:
    """What a test belongs to: its file, or what its file shares with others."""
    file = nodeid.split("::", 1)[0]
    return API if file.startswith(f"{API}/") else UNITS.get(file, file)


def on_real(unit: str) -> bool:
    """Whether a unit of work runs on a real control plane."""
    return unit == REAL or unit.startswith("tests/kubernetes/")


def longest_first(items: list[pytest.Item]) -> None:
    """Order the tests by what their unit takes, within a unit as they were."""
    sizes = Counter(unit(item.nodeid) for item in items)
    expected = {name: SECONDS.get(name, EACH * size) for name, size in sizes.items()}
    items.sort(key=lambda item: (-expected[unit(item.nodeid)], unit(item.nodeid)))


class Units(LoadScopeScheduling):
    """Hands out units in the order in which the tests were collected."""

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return unit(nodeid)
