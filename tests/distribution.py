"""Distribution of files to workers, and their order: long files come first, so that all workers end together.

A file is a unit of work, as with ``--dist loadfile``; files that need one expensive thing are one unit, so that it is
made once.
"""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

KEYCLOAK = "a real Keycloak"
SERVED, PRIVILEGE = "the served local cloud", "a served local cloud whose calls are judged"
API = "tests/api/one_cloud"
STACKS = "a synthesized stage"
REAL = "a real control plane"
UNITS = {
    "tests/contracts/test_browser_login.py": KEYCLOAK,
    "tests/contracts/test_identity.py": KEYCLOAK,
    "tests/contracts/test_keycloak_wire.py": KEYCLOAK,
    "tests/e2e/test_keycloak.py": KEYCLOAK,
    "tests/e2e/test_claims.py": SERVED,
    "tests/e2e/test_console_stories.py": SERVED,
    "tests/e2e/test_cudo_life.py": SERVED,
    "tests/e2e/test_day.py": SERVED,
    "tests/e2e/test_ec2_nodes.py": PRIVILEGE,
    "tests/e2e/test_eks_life.py": SERVED,
    "tests/e2e/test_event_story.py": SERVED,
    "tests/e2e/test_first_uses.py": SERVED,
    "tests/e2e/test_life.py": PRIVILEGE,
    "tests/stacks/test_least_privilege.py": PRIVILEGE,
    "tests/e2e/test_member_room.py": SERVED,
    "tests/e2e/test_month_budgets.py": SERVED,
    "tests/e2e/test_overlay_life.py": SERVED,
    "tests/e2e/test_pack_rights.py": SERVED,
    "tests/e2e/test_pods_to_nodes.py": SERVED,
    "tests/e2e/test_prometheus.py": SERVED,
    "tests/e2e/test_races.py": SERVED,
    "tests/e2e/test_reference.py": SERVED,
    "tests/e2e/test_restore.py": SERVED,
    "tests/e2e/test_sdk_page.py": SERVED,
    "tests/e2e/test_stacks.py": SERVED,
    "tests/e2e/test_terraform_life.py": PRIVILEGE,
    "tests/e2e/test_zones.py": SERVED,
    "tests/kubernetes/test_minors.py": SERVED,
    **{f"tests/kubernetes/test_{name}.py": REAL for name in ("agent", "api", "connection", "contract")},
    **{f"tests/kubernetes/test_{name}.py": REAL for name in ("control_plane", "join", "kubeadm", "overlay")},
    "tests/stacks/test_cost.py": STACKS,
    "tests/stacks/test_data_stack.py": STACKS,
    "tests/stacks/test_permissions.py": STACKS,
    "tests/stacks/test_service_stack.py": STACKS,
    "tests/stacks/test_synth.py": STACKS,
}
FIRST = ("tests/e2e/", "tests/kubernetes/", API, "tests/stacks/", "tests/api/", "tests/local/", "tests/conformance/")
"""Folders whose tests start processes and wait for them: they come before the others, in this order."""
AFTER = ("tests/workflows/", "tests/properties/", "tests/contracts/", "tests/constructs/", "tests/client/")
"""Folders whose files are longer than those of the rest, which are unit tests of a second or two."""


def unit(nodeid: str) -> str:
    """Unit that a test belongs to: its file, or what its file shares with others."""
    file = nodeid.split("::", 1)[0]
    return API if file.startswith(f"{API}/") else UNITS.get(file, file)


def on_real(unit: str) -> bool:
    """Whether a unit of work runs on a real control plane."""
    return unit == REAL or unit.startswith("tests/kubernetes/")


def rank(file: str) -> int:
    """Place of a file in a run: lower is earlier. What is shared by files comes first."""
    if file in UNITS:
        return 0
    folders = (*FIRST, *AFTER)
    return next((1 + number for number, folder in enumerate(folders) if file.startswith(folder)), 1 + len(folders))


def ordered(items: list[pytest.Item]) -> None:
    """Order the tests so that long units come first, and those of one unit follow each other, as they were."""
    order: dict[str, tuple[int, int]] = {}
    for number, item in enumerate(items):
        name = unit(item.nodeid)
        order[name] = min(order.get(name, (99, number)), (rank(item.nodeid.split("::", 1)[0]), number))
    items.sort(key=lambda item: order[unit(item.nodeid)])


class Units(LoadScopeScheduling):
    """Hands out units in the order in which the tests were collected."""

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return unit(nodeid)
