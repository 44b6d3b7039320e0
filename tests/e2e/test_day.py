"""A day of somebody who has the command line alone, on a terminal of 80 columns: each step says what it must say."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from local.testing.example import body_without_nodes
from tests.harness.blocks import SCARCE
from tests.harness.terminal import Running, Terminal

if TYPE_CHECKING:
    from local.testing.serving import Served

pytestmark = pytest.mark.timeout(900)
COLUMNS = 80
NAME = "day"


@pytest.fixture
def terminal(served: Served, tmp_path: Path) -> Terminal:
    variables = {name: served.environment[name] for name in ("STOCKYARD_URL", "STOCKYARD_TOKEN")}
    return Terminal(variables, tmp_path, COLUMNS)


@pytest.fixture
def document(tmp_path: Path) -> str:
    """The example, with a control plane of a type that its cloud has none of."""
    body: dict[str, Any] = body_without_nodes() | {"name": NAME}
    control = next(group for group in body["settings"]["autoscaler_node_groups"] if group["role"] == "control")
    control["instance_types"] = [SCARCE]
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(body), encoding="utf-8")
    return str(path)


@pytest.fixture
def watch(terminal: Terminal) -> Iterator[Running]:
    """Somebody who watches the clusters meanwhile, on another terminal."""
    running = terminal.start("cluster", "list", "--watch")
    yield running
    if running.process.poll() is None:
        running.interrupt()


def test_a_day_by_the_command_line(terminal: Terminal, document: str, watch: Running) -> None:
    identity = terminal.run("whoami")
    assert {"Tenant acme", "User local-user"} <= set(identity.lines)
    verified = terminal.run("account", "verify", "1")
    assert (verified.exit_code, "verified" in verified.text) == (0, True)

    plan = terminal.run("cluster", "create", "-f", document, "--dry-run")
    assert plan.exit_code == 0
    assert re.match(r"Would make \d+ things, which costs 0\.\d+ USD/hour, \d+\.\d+ USD/month\.", plan.lines[0])

    refused = terminal.run("cluster", "create", "-f", document, "--wait")
    assert refused.exit_code == 6
    assert "We currently do not have sufficient" in refused.text
    cure = next(line for line in refused.text.splitlines() if "stockyard cluster resume" in line)
    why = terminal.run("cluster", "list")
    assert any(line.startswith(f"{NAME} failed") and "ClusterCould" in line for line in why.lines)
    description = terminal.run("cluster", "describe", NAME)
    assert "do not have sufficient capacity" in " ".join(description.lines)
    assert f"stockyard cluster resume {NAME} --wait" in description.lines

    command = shlex.split(_unwrapped(refused.text, cure))
    assert command[:3] == ["stockyard", "cluster", "resume"]
    cured = terminal.run(*command[1:])
    assert (cured.exit_code, "succeeded" in cured.text) == (0, True)

    created = terminal.run("provider", "create", "-f", "examples/lab.yaml", "--name", "day-lab")
    assert created.exit_code == 0, created.text
    again = terminal.run("provider", "create", "-f", "examples/lab.yaml", "--name", "day-lab")
    assert again.exit_code == 5
    pool = terminal.run(
        "pool", "create", "--cluster", NAME, "--name", "base", "--quantity", "1", "--provider", "day-lab", "--wait"
    )
    assert pool.exit_code == 0, pool.text
    scaled = terminal.run("pool", "scale", "base", "--cluster", NAME, "--quantity", "2", "--wait")
    assert any(line.startswith("base static Ready 2/2 2") for line in scaled.lines), scaled.text
    nodes = terminal.run("claim", "list", "--cluster", NAME)
    assert sum(" Available " in line and " small " in line for line in nodes.lines) == 2

    placed = terminal.run("plan", "-f", "examples/pods.yaml", "--cluster", NAME)
    assert re.search(r"\d+ pods on nodes that are there", " ".join(placed.lines))
    cost = terminal.run("cost", "--by", "pool", "--cluster", NAME)
    assert any(line.startswith(f"{NAME} base 2 0.1000 73.00") for line in cost.lines), cost.text
    assert any(line.startswith("total 0.") for line in cost.lines)

    setting = 'settings.api_cidrs=["198.51.100.0/24"]'
    planned = terminal.run("cluster", "update", NAME, "--set", setting, "--dry-run")
    assert "Would change 1 thing" in planned.lines[0]
    changed = terminal.run("cluster", "update", NAME, "--set", setting, "--wait")
    assert (changed.exit_code, "change_cluster" in changed.text) == (0, True)
    audit = terminal.run("audit", "list", "-o", "wide")
    assert {"CreateCluster", "ResumeCluster", "CreatePool", "ChangePool", "ChangeCluster"} <= set(audit.text.split())

    doubted = terminal.run("cluster", "delete", NAME, keys="n\n")
    assert doubted.exit_code != 0
    assert terminal.run("cluster", "get", NAME).exit_code == 0
    deleted = terminal.run("cluster", "delete", NAME, "--yes", "--wait")
    assert (deleted.exit_code, "succeeded" in deleted.text) == (0, True)
    assert terminal.run("cluster", "get", NAME).exit_code == 3
    assert terminal.run("provider", "delete", "day-lab", "--yes").exit_code == 0
    spent = terminal.run("cost")
    assert any(line.startswith(f"{NAME} - 0.0000 0.00") for line in spent.lines), spent.text

    rows = [line.split()[1] for line in watch.interrupt().text.splitlines() if line.startswith(f"{NAME} ")]
    states = [state for index, state in enumerate(rows) if index == 0 or rows[index - 1] != state]
    assert states[:5] == ["preparing", "failed", "preparing", "ready", "deleting"]


def _unwrapped(text: str, line: str) -> str:
    """The command in a line that a terminal has wrapped: the lines that follow it belong to it."""
    lines = text.splitlines()
    remaining = " ".join(lines[lines.index(line) :])
    return remaining[remaining.index("stockyard cluster resume") : remaining.index("--wait") + len("--wait")]
