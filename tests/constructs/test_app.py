"""The example app: synthesized, without findings, deployed by the runner, changed, rolled back, deleted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from local.cloudformation import StackFailed, custom_resources
from stacks.node import use_bundled_node
from stockyard.domain.pools.records import Pool
from stockyard.domain.records import Cluster
from stockyard.operations.listing import every
from tests.harness.stacks.rig import rig

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "cdk" / "app.py"
VARIANTS: Mapping[str, Mapping[str, str]] = {
    "first": {},
    "grown": {"nodes": "3", "description": "Grown"},
    "refused": {"nodes": "-1", "description": "Refused"},
}


@pytest.fixture(scope="module")
def example() -> Any:
    use_bundled_node()
    spec = spec_from_file_location("example_app", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def templates(example: Any, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, dict[str, Any]]:
    """The template of each variant, and under ``findings`` what cdk-nag says of the first one."""
    from aws_cdk import App

    from stacks.application import findings

    written: dict[str, dict[str, Any]] = {}
    for name, context in VARIANTS.items():
        folder = tmp_path_factory.mktemp(name)
        app = App(outdir=str(folder), context=context, analytics_reporting=False, tree_metadata=False)
        example.build(app)
        if name == "first":
            assert findings(app) == []
        app.synth()
        written[name] = json.loads((folder / "Platform.template.json").read_text())
    return written


def test_the_handler_is_all_that_is_in_the_functions(templates: Mapping[str, Any], example: Any) -> None:
    resources = templates["first"]["Resources"]
    kinds = {name: resources[name]["Type"] for name in custom_resources(templates["first"])}
    assert list(kinds.values()) == [
        "Custom::StockyardNodeProvider",
        "Custom::StockyardCluster",
        "Custom::StockyardNodePool",
    ]
    handlers = [
        body["Properties"]["Handler"]
        for body in resources.values()
        if body["Type"] == "AWS::Lambda::Function" and body["Properties"]["Runtime"].startswith("python")
    ]
    assert handlers == ["stockyard_stack_resources.on_event", "stockyard_stack_resources.is_complete"]


def test_the_app_is_deployed_changed_rolled_back_and_deleted(templates: Mapping[str, Any]) -> None:
    with rig() as region:
        before = region.product.things()
        stack = region.runner.create("Platform", templates["first"])
        store = region.product.world.services.store
        (cluster,), (pool,) = every(store, Cluster), every(store, Pool)
        assert (pool.cluster_id, pool.quantity, cluster.tags["team"]) == (cluster.id, 1, "platform")
        region.runner.update(stack, templates["grown"])
        with pytest.raises(StackFailed, match="/quantity"):
            region.runner.update(stack, templates["refused"])
        assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
        (cluster,), (pool,) = every(store, Cluster), every(store, Pool)
        assert (pool.quantity, cluster.description) == (3, "Grown")
        region.runner.delete(stack)
        region.settle()
        assert region.product.things() == before
