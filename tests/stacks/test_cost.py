"""The figures of `make cost`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks import cost, node_cost, rates
from local.functions.invocation import Invocation
from local.testing.memory_store import MemoryRegistry
from stacks.functions import FUNCTIONS, SCHEDULES
from stockyard.adapters.catalog import Ec2PriceList
from stockyard.domain.clusters.manifests import ClusterDocument
from stockyard.domain.models.clusters.clusters import settings_for
from stockyard.domain.models.manifests.read_manifests import read_manifests
from stockyard.domain.records import Cluster
from stockyard.domain.values.prices import HOURS_A_MONTH
from stockyard.lifecycle.phases import ANY, PROCEDURES
from stockyard.operations.clusters.access.secret_refresh import REFRESH_SECONDS
from stockyard.operations.tenant_prices import TenantPrices
from stockyard.providers.clusters.eks import planning
from tests.harness import walk
from tests.harness.worlds.memory import FixedClock
from tests.harness.worlds.states import States

ROOT = Path(__file__).resolve().parents[2]


def test_cost_of_one_more_alarm_is_ten_cents(assembly: Any) -> None:
    before = cost.idle(assembly.service)
    template = json.loads(json.dumps(assembly.service))
    template["Resources"]["OneMore"] = {"Type": "AWS::CloudWatch::Alarm"}
    after = cost.idle(template)
    assert after["alarms"] - before["alarms"] == pytest.approx(rates.ALARM)
    assert {key for key in after if after[key] != before[key]} == {"alarms"}


def test_idle_stage_costs_less_than_goal(assembly: Any) -> None:
    assert 0 < sum(cost.idle_with_free_tier(assembly.service).values()) < cost.GOAL


def test_free_tier_never_makes_item_negative_or_more_expensive(assembly: Any) -> None:
    listed, paid = cost.idle(assembly.service), cost.idle_with_free_tier(assembly.service)
    assert listed.keys() == paid.keys()
    assert all(0 <= paid[key] <= listed[key] for key in listed)


def test_only_what_people_wait_for_is_traced(assembly: Any) -> None:
    asked_by_people = {spec.name for spec in FUNCTIONS if not spec.asynchronous} - {"machines", "runs", "sites"}
    assert cost.traced(assembly.service) == asked_by_people


def test_cost_counts_every_schedule() -> None:
    assert set(cost.RUNS) == set(SCHEDULES)


def test_cost_last_line_is_json_and_equals_items(
    assembly: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    acl = {"Type": "AWS::WAFv2::WebACL", "Properties": {"Rules": [{}]}}
    edge = {"Resources": {"WebAcl": acl}}
    (tmp_path / "Stockyard-dev-Edge.template.json").write_text(json.dumps(edge))
    folders = {None: assembly.folder, "api.example.com": tmp_path}

    def synthesize(stage: str, out: Path, *, bundled: bool, overrides: Mapping[str, Any] | None = None) -> Path:
        return folders[(overrides or {}).get("domain")]

    monkeypatch.setattr(cost, "synthesize", synthesize)
    assert cost.main() == 0
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert figures["idle_usd_month_list"] == pytest.approx(sum(cost.idle(assembly.service).values()), abs=1e-4)
    assert figures["cloudfront_usd_month"] == pytest.approx(sum(cost.cloudfront(edge).values()), abs=1e-4)
    assert figures["cluster_usd_month"] == pytest.approx(sum(cost.cluster().values()), abs=1e-4)


def test_the_plan_of_the_eks_example_says_what_make_cost_says() -> None:
    manifest = yaml.safe_load((ROOT / "examples" / "eks-inference.yaml").read_text(encoding="utf-8"))
    (document,) = read_manifests([manifest])
    assert isinstance(document, ClusterDocument)
    moment = "2026-11-25T00:00:00.000Z"
    settings = settings_for("aws", "k8s", "eks", document.name, document.settings)
    cluster = Cluster(
        "clu_1", document.name, "d", "k8s", "aws", 1, "inference-0123456789ab", "preparing", settings, moment, moment,
        kubernetes_version=document.kubernetes_version,
    )  # fmt: skip
    registry = MemoryRegistry()
    prices = TenantPrices(Ec2PriceList(registry.platform()), registry.store("acme"))
    hours = [item.hour for item in (*planning.price_items(cluster, prices), *planning.group_items(cluster, prices))]
    total = sum(hour for hour in hours if hour is not None)
    assert None not in hours
    assert HOURS_A_MONTH * total == pytest.approx(sum(node_cost.tenant_on_eks().values()), rel=1e-6)


def test_a_quiet_fleet_costs_less_than_its_goal(assembly: Any) -> None:
    for tenants in cost.FLEET_TENANTS:
        items = cost.fleet(assembly.service, tenants)
        assert all(usd > 0 for usd in items.values())
        assert sum(items.values()) < cost.FLEET_GOAL, items


def test_a_fleet_that_moves_costs_less_than_its_goal(assembly: Any) -> None:
    for tenants in cost.FLEET_TENANTS:
        items = cost.moving(assembly.service, tenants)
        assert all(usd > 0 for usd in items.values())
        assert sum(items.values()) < cost.MOVING_GOAL, items


def test_nodes_that_move_cost_more_than_nodes_that_rest() -> None:
    idle, busy = (sum(node_cost.node_month(quiet=quiet).values()) for quiet in (True, False))
    assert busy == pytest.approx(12 * idle), "a sweep each five minutes, instead of one an hour"
    assert sum(node_cost.node_life().values()) <= node_cost.LIFE_GOAL == 0.0008
    assert sum(cost.spot_cluster(tells=False).values()) > 5 * sum(cost.agent().values())
    assert sum(cost.spot_cluster().values()) == sum(cost.agent().values())


def test_a_kept_secret_costs_where_it_is_asked_for_and_nothing_elsewhere(
    assembly: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def figures() -> list[dict[str, float]]:
        idle, fleets = cost.idle(assembly.service), [cost.fleet(assembly.service, n) for n in cost.FLEET_TENANTS]
        return [idle, cost.cluster(), cost.quiet_cluster(), cost.spot_cluster(), node_cost.tenant_on_eks(), *fleets]

    before, once = figures(), sum(cost.kept_secret().values())
    assert 0.05 < once < 0.20
    monkeypatch.setattr(cost, "SECRET_REFRESH_SECONDS", REFRESH_SECONDS / 2)
    assert sum(cost.kept_secret().values()) == pytest.approx(2 * once)
    assert figures() == before


def test_transitions_of_a_life_are_those_of_its_documents() -> None:
    """Played in the interpreter, with as many looks at each phase as the figures have."""
    for kind in ("create_node", "delete_node"):
        procedure = PROCEDURES[kind, ANY]
        looks = Counter[str]()
        phases = [phase.name for phase in procedure.phases if not phase.before_workflow]

        def answer(_: str, __: Any, looks: Counter[str] = looks, phases: list[str] = phases) -> Invocation:
            done = False
            for phase in phases:
                if looks[phase] >= node_cost.LOOKS.get(phase, 1):
                    continue
                looks[phase] += 1
                done = looks[phase] >= node_cost.LOOKS.get(phase, 1)
                if not done:
                    break
            return Invocation(json.dumps({"done": done, "wait": 1}).encode())

        states = States(FixedClock(), answer)
        states.create("machine", walk.document(procedure))
        execution = states.start("machine", "one", {"tenant": "t", "claim_id": "c", "operation_id": "o", "attempt": 1})
        states.run()
        assert execution.state == procedure.ends[0]
        assert len(execution.trail) == node_cost.transitions(kind)
    least = node_cost.transitions("create_node") + node_cost.transitions("delete_node")
    assert least <= node_cost.LIFE_TRANSITIONS < least + 3, "the measured ones, with looks in vain"
