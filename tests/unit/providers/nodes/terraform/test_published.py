"""Published documents of the kind: each is applied, and its templates ask for variables that runs have."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from stockyard.domain.records import Cluster, NodeClaim, NodeEnvironment, NodeProvider, Placement
from stockyard.errors import InvalidInput, NodeCouldNotBeProvisioned
from stockyard.machines import node
from stockyard.machines.cloud_config import FirstBoot
from stockyard.operations.manifests.apply import apply_manifests
from stockyard.operations.manifests.desired import read_desired
from stockyard.operations.node_providers.visible import named
from stockyard.operations.services import Services
from stockyard.providers.nodes.terraform import templates, variables
from stockyard.providers.nodes.terraform.document import TerraformBlock
from stockyard.providers.nodes.terraform.provider import TerraformConfig, TerraformNodes
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.conftest import make_world

FOLDER = Path(__file__).parents[6] / "shared" / "examples" / "vcluster"
pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="the published examples are not here")
USED = re.compile(r"var\.vcluster((?:\.[A-Za-z_]+|\[\"[^\"]+\"\])+)")
ENVIRONMENT_FIELDS = {"name", "namespace", "requirements", "properties", "instance", "nodeProvider", "nodeEnvironment"}
NODE_FIELDS = ENVIRONMENT_FIELDS | {"userData", "userDataBase64", "nodeClaim", "nodeType"}


def published() -> list[dict[str, Any]]:
    documents = [yaml.safe_load(path.read_text()) for path in sorted(FOLDER.glob("nodeprovider-*.yaml"))]
    return [document for document in documents if "terraform" in document["spec"]]


@pytest.fixture
def services() -> Services:
    unused: Any = None
    source = TerraformNodes(TerraformConfig("https://api.example", "us-east-1"), unused, unused, unused)
    return with_ports(make_world().services, node_sources={"terraform": source})


def test_each_published_document_is_applied(services: Services) -> None:
    documents = published()
    assert len(documents) == 5
    for index, document in enumerate(documents):
        named_anew = {**document, "metadata": {"name": f"p{index}"}}
        desired = read_desired(services, [named_anew], "user:ann", admin=True)
        (result,) = apply_manifests(services, desired, "user:ann", "r")
        assert result["action"] == "created"
        provider = named(services, f"p{index}")
        assert provider is not None
        assert provider.phase == "Available"
        for stage, template in templates.stages_of(provider):
            assert _fields(template.inline or "") <= {"name", "namespace", "requirements", "properties", "instance"}, (
                stage
            )
        for name in [entry["name"] for entry in provider.spec["terraform"].get("nodeTypes") or ()] or ["any"]:
            template = templates.of_type(provider, name)
            assert template is not None
            assert _fields(template.inline or "") <= NODE_FIELDS


def _fields(text: str) -> set[str]:
    return {match.group(1).split(".")[1].partition("[")[0] for match in USED.finditer(text)}


def claim_of(**fields: Any) -> NodeClaim:
    return NodeClaim(id="ncl_01ARZ3NDEKTSV4RRFFQ69G5FAV", name="one", created_at="t", updated_at="t", **fields)


def of_node(provider: NodeProvider, claim: NodeClaim, zones: tuple[str, ...] = ("*",)) -> dict[str, Any]:
    placement = Placement(provider.id, f"{provider.name}.large", "on-demand", zones, 1, "t")
    properties = {**provider.properties, **provider.spec["terraform"]["nodeTypes"][1]["properties"]}
    return {"requirements": variables.requirements_of(claim, placement, properties)}


def test_lists_and_stars_become_one_value_before_the_run() -> None:
    document = next(each for each in published() if "cpu-generation" in str(each))
    provider = NodeProvider("npr_1", "tf", "terraform", document["spec"], "t", "t")
    asking = [{"key": "region", "operator": "In", "values": ["eu-west-1", "eu-west-2"]}]
    resolved = of_node(provider, claim_of(requirements=tuple(asking)), ("eu-west-1a",))["requirements"]
    assert (resolved["region"], resolved["cpu-generation"]) == ("eu-west-1", "old")
    assert resolved["topology.kubernetes.io/zone"] == resolved["zone"] == "eu-west-1a"
    newer = ({"key": "cpu-generation", "operator": "NotIn", "values": ["old"]}, *asking)
    assert of_node(provider, claim_of(requirements=newer))["requirements"]["cpu-generation"] == "new"
    with pytest.raises(NodeCouldNotBeProvisioned, match=r"property region is \*"):
        of_node(provider, claim_of())


def test_user_data_fits_ec2_in_the_published_form() -> None:
    boot = node.first_boot(
        api_url="https://stockyard-production.execute-api.ap-southeast-2.amazonaws.com",
        cluster_id="clu_01ARZ3NDEKTSV4RRFFQ69G5FAV",
        kubernetes_version="1.36",
        claim_id="ncl_01ARZ3NDEKTSV4RRFFQ69G5FAV",
        token="f" * 64,
    )
    assert isinstance(boot, FirstBoot)
    assert len(boot.script().encode()) < 16_384
    assert boot.script().startswith("#!/bin/bash")


def test_secret_outputs_of_an_environment_stand_where_templates_look() -> None:
    environment = NodeEnvironment(
        "nev_1", "clu", "npr", "p", "t", "t", outputs={"infrastructure": {"vpc": "v"}, "a": 1}
    )
    outputs = variables.outputs_of(environment, {"infrastructure.key": "k", "b": [2]})
    assert outputs == {"infrastructure": {"vpc": "v", "key": "k"}, "a": 1, "b": [2]}


@pytest.mark.parametrize(
    ("block", "pointer", "text"),
    [
        ({"nodeTemplate": {"git": {"repository": "git@github.com:a/b.git"}}}, "repository", "SSH is not offered"),
        ({"nodeTemplate": {"git": {"repository": "ssh://x/y"}}}, "repository", "SSH is not offered"),
        ({"nodeTemplate": {"git": {"repository": "http://x/y"}}}, "repository", "must begin with https://"),
        ({"nodeTemplate": {"git": {"repository": "https://u:p@x/y"}}}, "repository", "has credentials in it"),
        ({"nodeTemplate": {"git": {"repository": "https://x/y", "commit": "main"}}}, "commit", "pattern"),
        (
            {"nodeTemplate": {"git": {"repository": "https://x/y", "extraEnv": [{"name": "TF_HTTP_X", "value": "1"}]}}},
            "extraEnv",
            "Stockyard uses itself",
        ),
        ({"nodeTemplate": {"inline": "x"}, "runner": {"cloudAccount": 0}}, "cloudAccount", "1"),
    ],
)
def test_what_a_run_could_not_do_is_refused_at_its_field(block: dict[str, Any], pointer: str, text: str) -> None:
    from stockyard.domain.models.base import read

    with pytest.raises(InvalidInput) as refused:
        read(TerraformBlock, block)
    [fault] = refused.value.errors
    assert pointer in fault.pointer
    assert text in fault.detail or text == "pattern"


def test_a_cluster_is_told_by_its_names() -> None:
    cluster = Cluster("clu_1", "demo", "d", "k8s", "aws", 1, "c", "ready", {}, "t", "t", tags={"team": "a"})
    assert variables._instance(cluster)["metadata"]["labels"] == {"team": "a"}
