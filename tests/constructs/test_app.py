"""The example app: synthesized, without findings, deployed by the runner, changed, rolled back, deleted."""

from __future__ import annotations

import importlib.metadata
import json
import runpy
import tomllib
from collections.abc import Mapping
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

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


def test_the_app_starts_as_its_settings_say(example: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (program, file) = json.loads((EXAMPLE.parent / "cdk.json").read_text())["app"].split()
    assert (program, EXAMPLE.parent / file) == ("python", EXAMPLE)
    for line in (EXAMPLE.parent / "requirements.txt").read_text().splitlines():
        needed = Requirement(line)
        own = tomllib.loads((EXAMPLE.parents[2] / "constructs" / "pyproject.toml").read_text())["project"]
        version = own["version"] if needed.name == own["name"] else importlib.metadata.version(needed.name)
        assert version in needed.specifier, line
    monkeypatch.setattr("aws_cdk.App", partial(importlib.import_module("aws_cdk").App, outdir=str(tmp_path)))
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert len(custom_resources(json.loads((tmp_path / "Platform.template.json").read_text()))) == 3


@pytest.fixture(scope="module")
def everything(example: Any, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """A template with what the example does not have: accounts with secrets, profiles, steps, grants, adoption."""
    from aws_cdk import App, Duration, NestedStack, RemovalPolicy, Stack
    from aws_cdk import aws_iam as iam
    from aws_cdk import aws_secretsmanager as secretsmanager

    from stacks.application import findings
    from stockyard_cdk import CloudAccount, Cluster, ClusterProfile, NodePool, Stockyard

    folder = tmp_path_factory.mktemp("everything")
    app = App(outdir=str(folder), analytics_reporting=False, tree_metadata=False)
    stack = Stack(app, "Everything")
    client, reader, key = (
        secretsmanager.Secret.from_secret_name_v2(stack, name, name) for name in ("client", "reader", "key")
    )
    stockyard = Stockyard(stack, "Stockyard", url="https://a", issuer="https://b", client=client)
    account = CloudAccount(
        stack,
        "Account",
        stockyard=stockyard,
        provider="aws",
        name="shop",
        attributes={"role_arn": "arn:aws:iam::333333333333:role/stockyard"},
        secrets={"/attributes/secret_access_key": key},
    )
    role = iam.Role(stack, "Role", assumed_by=iam.AccountPrincipal("111111111111"), external_ids=[account.external_id])
    packs: Any = [{"layer": "k8s", "name": "kubernetes", "tag": "1.34"}]
    profile = ClusterProfile(stack, "Base", stockyard=stockyard, name="base", version="1.0.0", packs=packs)
    cluster = Cluster(
        stack,
        "Cluster",
        stockyard=stockyard,
        description="All",
        cloud_account_id=account.verified_after(role),
        settings={"key_pair": "my-key"},
        profiles=[{"name": profile.profile_name}],
        adopt=True,
        removal_policy=RemovalPolicy.RETAIN,
        patience=Duration.hours(2),
    )
    NodePool(stack, "Workers", stockyard=stockyard, cluster=cluster, quantity=1)
    user = iam.Role(stack, "User", assumed_by=iam.AccountRootPrincipal())
    cluster.grant_read_kubeconfig(user, reader)
    with pytest.raises(ValueError, match="reader"):
        cluster.grant_read_kubeconfig(user, client)
    for patience in (Duration.seconds(0), Duration.hours(12)):
        with pytest.raises(ValueError, match="eleven hours"):
            Cluster(
                stack,
                f"Patient{patience.to_seconds()}",
                stockyard=stockyard,
                description="None",
                cloud_account_id=1,
                settings={"key_pair": "my-key"},
                patience=patience,
            )
    second = Stack(app, "Second")
    NodePool(second, "More", stockyard=stockyard, cluster="clu_1", quantity=1)
    bare = Stockyard(second, "Bare", url="https://a", issuer="https://b/", role_name="stockyard-stacks")
    NodePool(second, "Without", stockyard=bare, cluster="clu_1", quantity=1)
    with pytest.raises(ValueError, match="nested stack"):
        NodePool(NestedStack(stack, "Inner"), "More", stockyard=stockyard, cluster="clu_1", quantity=1)
    assert findings(app) == []
    app.synth()
    template: dict[str, Any] = json.loads((folder / "Everything.template.json").read_text())
    return {**template, "second": json.loads((folder / "Second.template.json").read_text())}


def _of(template: Mapping[str, Any], kind: str) -> list[tuple[str, dict[str, Any]]]:
    return [(name, body) for name, body in template["Resources"].items() if body["Type"] == kind]


def test_a_patient_cluster_is_a_row_of_resources_that_wait_on(everything: Mapping[str, Any]) -> None:
    ((cluster, body),) = _of(everything, "Custom::StockyardCluster")
    waits = _of(everything, "Custom::StockyardClusterWait")
    assert (body["Properties"]["AtLimit"], body["Properties"]["Adopt"]) == ("Continue", "true")
    assert body["DeletionPolicy"] == "Retain"
    declared = {**everything["Resources"], **everything["second"]["Resources"]}
    retained_names = {name for name, resource in declared.items() if "Retains" in resource.get("Properties", {})}
    assert (retained_names, body["Properties"]["Retains"]) == ({cluster}, "true")
    assert [wait["Properties"].get("AtLimit") for _, wait in waits] == ["Continue", None]
    assert waits[0][0] in waits[1][1]["DependsOn"]
    assert cluster in waits[0][1]["DependsOn"]
    assert {"Fn::GetAtt": [cluster, "Name"]} in waits[1][1]["Properties"]["Document"]["Fn::Join"][1]


def test_an_account_is_proven_behind_its_role_and_clusters_stand_behind_that(everything: Mapping[str, Any]) -> None:
    ((account, declared),) = _of(everything, "Custom::StockyardCloudAccount")
    ((proof, step),) = _of(everything, "Custom::StockyardAccountVerification")
    ((role, _),) = [(name, body) for name, body in _of(everything, "AWS::IAM::Role") if name.startswith("Role")]
    ((_, cluster),) = _of(everything, "Custom::StockyardCluster")
    assert role in step["DependsOn"]
    assert {"Fn::GetAtt": [account, "ExternalId"]} in _leaves(everything["Resources"][role])
    assert {"Fn::GetAtt": [proof, "Number"]} in cluster["Properties"]["Document"]["Fn::Join"][1]
    assert "secret_access_key" not in declared["Properties"]["Document"]
    assert "/attributes/secret_access_key" in json.dumps(declared["Properties"]["Secrets"])


def test_the_handler_may_read_its_secrets_and_look_at_its_stack_and_no_more(everything: Mapping[str, Any]) -> None:
    actions = {
        action
        for name, policy in _of(everything, "AWS::IAM::Policy")
        if "HandlerRole" in name
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        for action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
    }
    assert actions == {
        *("cloudformation:DescribeStackResource", "logs:CreateLogStream", "logs:PutLogEvents"),
        *("secretsmanager:DescribeSecret", "secretsmanager:GetSecretValue"),
    }


def test_without_a_secret_the_role_may_have_tokens_for_the_realm_alone(everything: Mapping[str, Any]) -> None:
    statements = [
        statement
        for _, policy in _of(everything["second"], "AWS::IAM::Policy")
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
    ]
    (sign,) = [statement for statement in statements if statement["Action"] == "sts:GetWebIdentityToken"]
    assert sign["Condition"] == {"ForAllValues:StringEquals": {"sts:IdentityTokenAudience": ["https://b"]}}
    functions = [body["Properties"] for _, body in _of(everything["second"], "AWS::Lambda::Function")]
    handlers = [function for function in functions if function["Handler"].startswith("stockyard")]
    expected = {"STOCKYARD_ISSUER", "STOCKYARD_LIMIT_SECONDS", "STOCKYARD_URL"}
    assert [set(function["Environment"]["Variables"]) for function in handlers] == [expected] * 2


def _leaves(value: Any) -> list[Any]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [value, *(leaf for each in inner for leaf in _leaves(each))]
