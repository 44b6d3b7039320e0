"""Minutes and price of the runs that make a node, as a plan tells them."""

from __future__ import annotations

from typing import Any

from stockyard.domain.models.base import read
from stockyard.domain.models.plan import PlannedRun
from stockyard.domain.models.pools.pools import PoolCreate
from stockyard.domain.nodes.records import NewClaim
from stockyard.operations.fleet.explain import plan_claim
from stockyard.operations.fleet.pools.plan import plan_pool
from stockyard.operations.node_providers.providers import finding_remarks
from stockyard.providers.nodes.simulated.provider import SimulatedNodes
from stockyard.providers.nodes.terraform.provider import TerraformConfig, TerraformNodes
from tests.harness.runs.memory_runner import MemoryRunner
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.conftest import World, make_world
from tests.unit.operations.fleet.pools.conftest import make_yard
from tests.unit.operations.nodes import Nodes

SMALL: dict[str, Any] = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "cost": 1}
TEMPLATE = {"inline": "# a node", "timeout": "20m"}


def plan(world: World, kind: str, *, with_run: bool = False, **block: Any) -> dict[str, Any]:
    nodes = Nodes.of(world.registry, world.services, world.clock)
    unused: Any = None
    runner = MemoryRunner(unused, world.clock)
    source = TerraformNodes(TerraformConfig("https://api.example", "us-east-1"), runner, unused, unused)
    sources = {"terraform": source, "simulated": SimulatedNodes(world.registry.store)}
    nodes.services = with_ports(nodes.services, node_sources=sources)
    provider = nodes.provider("lab", SMALL, kind=kind, block=block, price_per_cost_unit=0.01)
    assert not any("no price" in entry["detail"] for entry in finding_remarks(nodes.services, provider))
    return plan_claim(nodes.services, NewClaim(name="one", resources={"cpu": "1"}), with_run=with_run)


def test_a_plan_of_a_node_by_a_template_tells_minutes_and_price_of_its_runs(world: World) -> None:
    answer = plan(world, "terraform", nodeTemplate=TEMPLATE)
    assert answer["warnings"] == [
        {
            "pointer": "",
            "detail": "Runs in your own account make and remove it: about 6 minutes, 0.02 USD, at most 60 minutes, 0.20"
            " USD; one of 2 minutes compares it each day, 0.21 USD a month. A minute is 0.0034 USD. None of this is in"
            " the price.",
            "note": True,
        }
    ]
    assert answer["price"]["hour"] == 0.01


def test_a_template_without_a_price_is_warned_of(world: World) -> None:
    unused: Any = None
    source = TerraformNodes(TerraformConfig("https://api.example", "us-east-1"), unused, unused, unused)
    nodes = Nodes.of(world.registry, world.services, world.clock)
    nodes.services = with_ports(nodes.services, node_sources={"terraform": source})
    provider = nodes.provider("lab", SMALL, kind="terraform", block={"nodeTemplate": TEMPLATE})
    (entry,) = finding_remarks(nodes.services, provider)
    assert entry["pointer"] == "/spec"
    assert "no price" in entry["detail"]


def test_an_environment_is_told_besides(world: World) -> None:
    stages = {"infrastructure": TEMPLATE, "kubernetes": TEMPLATE}
    (note,) = plan(world, "terraform", nodeTemplate=TEMPLATE, nodeEnvironmentTemplate=stages)["warnings"]
    assert "About 12 minutes, 0.04 USD, are once for the environment of the cluster." in note["detail"]


def test_no_other_plan_has_runs(world: World) -> None:
    answer = plan(world, "simulated")
    assert (answer["warnings"], "run" in answer) == ([], False)
    answer = plan(world, "simulated", with_run=True)
    assert answer["run"] is None
    assert [each["detail"] for each in answer["warnings"]] == ["No template makes the node that would be chosen."]


def test_a_run_is_planned_with_template_and_variables_and_without_secrets() -> None:
    git = {"repository": "https://git.example/nodes.git", "branch": "main", "credentials": "git-token"}
    for template, expected in (
        (TEMPLATE, {"inline": "# a node"}),
        ({"git": git}, {"git": {"repository": git["repository"], "branch": "main"}}),
    ):
        answer = plan(make_world(), "terraform", nodeTemplate=template, with_run=True)
        run = PlannedRun.model_validate(answer["run"])
        assert run.template == expected
        node = run.variables["vcluster"]
        assert (node["name"], node["userData"], node["nodeType"]["metadata"]["name"]) == ("one", "", "lab.small")
        assert "lab.small" in node["requirements"].values()
        assert "git-token" not in str(answer)


def test_the_plan_of_a_pool_tells_the_runs_of_each_node() -> None:
    yard = make_yard()
    unused: Any = None
    source = TerraformNodes(
        TerraformConfig("https://api.example", "us-east-1"), MemoryRunner(unused, yard.world.clock), unused, unused
    )
    sources = {**yard.nodes.services.node_sources, "terraform": source}
    yard.nodes.services = with_ports(yard.nodes.services, node_sources=sources)
    block = {"nodeTemplate": TEMPLATE}
    yard.nodes.provider("tofu", SMALL, kind="terraform", block=block, price_per_cost_unit=0.01)
    words = "Runs in your own account make and remove each node: about 6 minutes"
    for provider, count in (("tofu", 1), ("sim", 0)):
        pool = read(PoolCreate, {"name": "p", "quantity": 2, "provider": provider}).new_pool()
        details = [each["detail"] for each in plan_pool(yard.nodes.services, yard.cluster, pool)["warnings"]]
        assert [detail.startswith(words) for detail in details] == [True] * count, details
