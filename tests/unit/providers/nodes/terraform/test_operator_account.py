"""Runs in an account of the operator's: off by default, for shared providers alone, in that account of its tenant."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import Any, cast

import pytest
from pydantic import ValidationError

from local.testing.memory_store import MemoryStore, MemoryTable
from stockyard.domain.platform import SHARED
from stockyard.domain.records import NodeProvider
from stockyard.errors import NodeCouldNotBeProvisioned
from stockyard.ports import Create
from stockyard.ports.runs import RunnerAccount
from stockyard.providers.nodes.terraform.document import TerraformBlock
from stockyard.providers.nodes.terraform.provider import TerraformConfig, TerraformNodes
from tests.contracts.test_node_source import World
from tests.harness.runs.accounts import account

BLOCK: dict[str, Any] = {
    "runner": {"operator": True},
    "nodeTemplate": {"inline": "# a machine"},
    "nodeTypes": [{"name": "small", "resources": {"cpu": 2, "memory": "8Gi"}}],
}
OWN, OF_ALL = "npr_01KDVJXQ80000000000000000A", f"{SHARED}01KDVJXQ80000000000000000A"


def config(operator_runner: str) -> TerraformConfig:
    return TerraformConfig("https://api.example", "us-east-1", operator_runner=operator_runner)


def provider(identifier: str) -> NodeProvider:
    return NodeProvider(identifier, "tofu", "terraform", {"terraform": BLOCK}, "t", "t", price_per_cost_unit=0.001)


@pytest.mark.parametrize(
    ("identifier", "setting", "words"),
    [
        (OF_ALL, "ops/7", None),
        (OF_ALL, "", "operator_runner is not set"),
        (OWN, "ops/7", "only shared node providers"),
    ],
)
def test_only_shared_providers_may_run_in_an_operators_account_that_there_is(
    identifier: str, setting: str, words: str | None
) -> None:
    absent = cast(Any, None)
    findings = TerraformNodes(config(setting), absent, absent, absent).inspect(provider(identifier), None)
    assert [finding.pointer for finding in findings] == ([] if words is None else ["/spec/runner/operator"])
    assert words is None or words in findings[0].detail


def test_plans_say_nothing_of_runs_that_the_tenant_does_not_pay() -> None:
    absent = cast(Any, None)
    assert TerraformNodes(config("ops/7"), absent, absent, absent).run_times(provider(OF_ALL), "small") is None


def test_a_document_has_one_account_for_runs() -> None:
    TerraformBlock.model_validate(BLOCK)
    with pytest.raises(ValidationError, match="runner"):
        TerraformBlock.model_validate({**BLOCK, "runner": {"operator": True, "cloudAccount": 1}})


def test_runs_of_a_shared_provider_have_the_operators_account_and_a_tenants_own_never(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World("terraform", ExitStack())
    source = cast(TerraformNodes, world.case.source)
    operators, tenants_store = MemoryStore(MemoryTable(), "ops"), source._store_of
    operators.commit(Create(replace(account("7"), external_id="external-of-the-operator")))
    monkeypatch.setattr(source, "_store_of", lambda tenant: operators if tenant == "ops" else tenants_store(tenant))
    monkeypatch.setattr(source, "_config", config("ops/7"))
    targets: list[RunnerAccount] = []
    start = source._runner.start
    monkeypatch.setattr(source._runner, "start", lambda target, run: targets.append(target) or start(target, run))
    world.case.spec["terraform"]["runner"] = {"operator": True}
    world.provider = replace(world.provider, id=OF_ALL)
    world.prepare()
    world.launch()
    world.terminate()
    assert {(target.tenant, target.account.external_id) for target in targets} == {("ops", "external-of-the-operator")}
    assert len(targets) == 2, "one applied, one destroyed"
    world.provider = replace(world.provider, id=OWN)
    world.next_attempt()
    with pytest.raises(NodeCouldNotBeProvisioned, match="only shared node providers"):
        source.launch(world.work())
    monkeypatch.setattr(source, "_config", config("ops/8"))
    world.provider = replace(world.provider, id=OF_ALL)
    with pytest.raises(NodeCouldNotBeProvisioned, match="ops/8 is not registered"):
        source.launch(world.work())
