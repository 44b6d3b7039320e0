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
    "tests/e2e/test_ec2_nodes.py": PRIVILEGE,
    "tests/e2e/test_life.py": PRIVILEGE,
    "tests/stacks/test_least_privilege.py": PRIVILEGE,
    "tests/e2e/test_pods_to_nodes.py": SERVED,
    "tests/e2e/test_races.py": SERVED,
    **{f"tests/kubernetes/test_{name}.py": REAL for name in ("agent", "api", "connection", "contract")},
    **{f"tests/kubernetes/test_{name}.py": REAL for name in ("control_plane", "join", "kubeadm")},
    "tests/stacks/test_cost.py": STACKS,
    "tests/stacks/test_data_stack.py": STACKS,
    "tests/stacks/test_permissions.py": STACKS,
    "tests/stacks/test_service_stack.py": STACKS,
    "tests/stacks/test_synth.py": STACKS,
}
SECONDS = {
    SERVED: 110,
    "tests/e2e/test_canary.py": 30,
    PRIVILEGE: 90,
    "tests/api/test_schemathesis.py": 60,
    API: 95,
    KEYCLOAK: 80,
    REAL: 75,
    "tests/kubernetes/test_served.py": 70,
    "tests/kubernetes/test_keycloak.py": 45,
    "tests/workflows/test_crash_matrix.py": 25,
    "tests/workflows/test_crash_judge.py": 15,
    "tests/local/test_cloud.py": 55,
    STACKS: 40,
    "tests/contracts/test_node_source.py": 25,
    "tests/local/test_fault_plan.py": 25,
    "tests/unit/providers/clusters/ec2/test_provider.py": 22,
    "tests/contracts/test_cluster_driver.py": 20,
    "tests/unit/agent/test_crashes.py": 16,
    "tests/unit/providers/nodes/ec2/test_machine.py": 16,
    "tests/client/cli/test_process.py": 15,
}
"""About how long the longest take; of the others, ``EACH`` a test."""
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
