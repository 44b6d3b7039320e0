"""Node types that ``type list`` shows: by what they have, where they are and what they cost."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from stockyard_client.cli.documents.bad_input import BadInput
from stockyard_client.cli.input.inputs import requirement
from stockyard_client.cli.nodes.type_filters import TypeFilter, gpu_request, gpus, quantity
from stockyard_client.node_models import NodeType

ARCH, ZONE, REGION = "kubernetes.io/arch", "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
MEMORY = "karpenter.k8s.aws/instance-memory"
GPU = "karpenter.k8s.aws/instance-gpu-name"


def node_type(name: str, cpu: str, memory: str, price: float | None = 0.1, **more: Any) -> NodeType:
    properties = {ARCH: "amd64", ZONE: "*", REGION: "us-east-1", **more.pop("properties", {})}
    provider, _, own_name = name.partition(".")
    resources = {"cpu": cpu, "memory": memory, **more.pop("resources", {})}
    named = {"id": f"ntp_{name}", "name": name, "type": own_name, "provider": provider, "phase": "Available"}
    document = {**named, "properties": properties, "resources": resources, "usd_hour": price, "version": 1, **more}
    return NodeType.model_validate(document)


SMALL = node_type("ec2.t3.small", "2", "2Gi", 0.02)
ARM = node_type("ec2.m7g.large", "2", "8Gi", 0.08, properties={ARCH: "arm64"})
UNPRICED = node_type("ec2.x9.large", "4", "16Gi", None)
L4 = node_type("ec2.g6.xlarge", "4", "16Gi", 0.8, properties={GPU: "l4"}, resources={"nvidia.com/gpu": "1"})
L4X4 = node_type("ec2.g6.12xlarge", "48", "192Gi", 4.6, properties={GPU: "l4"}, resources={"nvidia.com/gpu": "4"})
SIM = node_type("lab.base", "500m", "512Mi", 0.01, properties={ZONE: "zone-a,zone-b", REGION: "here"})
ON_DEMAND = {"capacity_type": "on-demand", "usd_hour": 0.096}
ON_SPOT = {"capacity_type": "spot", "usd_hour": 0.04, "zone_prices": {"use1-az4": 0.04}}
SPOT = node_type("ec2.m5.large", "2", "8Gi", 0.04, offerings=[ON_DEMAND, ON_SPOT])
LARGE = node_type("ec2.r5.large", "2", "15Gi", None, properties={MEMORY: "16384"})
ALL = [SMALL, ARM, UNPRICED, L4, L4X4, SIM, SPOT, LARGE]


@pytest.mark.parametrize(
    ("type_filter", "names"),
    [
        (TypeFilter(), [each.type for each in ALL]),
        (TypeFilter(cpu="4"), ["x9.large", "g6.xlarge", "g6.12xlarge"]),
        (TypeFilter(cpu="600m", memory="8Gi", max_price=0.5), ["m7g.large", "m5.large"]),
        (TypeFilter(memory="8Gi", max_price=0.09), ["m7g.large"]),
        (TypeFilter(arch="arm64"), ["m7g.large"]),
        (TypeFilter(gpu="1"), ["g6.xlarge", "g6.12xlarge"]),
        (TypeFilter(gpu="L4"), ["g6.xlarge", "g6.12xlarge"]),
        (TypeFilter(gpu="l4:2"), ["g6.12xlarge"]),
        (TypeFilter(gpu="t4"), []),
        (TypeFilter(zone="zone-b"), ["base"]),
        (TypeFilter(zone="use1-az4"), ["m5.large"]),
        (TypeFilter(zone="us-east-1c", cpu="4"), ["x9.large", "g6.xlarge", "g6.12xlarge"]),
        (TypeFilter(zone="us-west-2a"), []),
        (TypeFilter(capacity_type="spot"), ["m5.large"]),
        (TypeFilter(capacity_type="spot", max_price=0.05), ["m5.large"]),
        (TypeFilter(capacity_type="on-demand", max_price=0.05), []),
        (TypeFilter(properties=[requirement("kubernetes.io/arch!=amd64")]), ["m7g.large"]),
        (TypeFilter(properties=[requirement(f"{ZONE}=zone-b"), requirement(REGION)]), [each.type for each in ALL]),
        (TypeFilter(properties=[requirement(f"{GPU}=l4,t4")]), ["g6.xlarge", "g6.12xlarge"]),
        (TypeFilter(properties=[requirement(f"!{GPU}")]), [each.type for each in ALL if "g6" not in each.type]),
        (TypeFilter(properties=[requirement(f"{MEMORY}>9000")]), ["r5.large"]),
    ],
)
def test_types_are_listed_by_what_is_wanted(type_filter: TypeFilter, names: list[str]) -> None:
    assert [each.type for each in type_filter.of(ALL)] == names


@pytest.mark.parametrize("type_filter", [TypeFilter(cpu="many"), TypeFilter(memory="4"), TypeFilter(gpu="l4:some")])
def test_what_is_no_amount_is_refused_by_its_option(type_filter: TypeFilter) -> None:
    for types in (ALL, []):
        with pytest.raises(BadInput, match=r"^--(cpu|memory|gpu) "):
            type_filter.of(types)
    assert [quantity(text, "--x") for text in ("2", "500m", "1.5Gi", "3M")] == [2, 0.5, 1.5 * 2**30, 3e6]


def test_gpus_of_a_claim_are_asked_for_as_their_providers_say_it() -> None:
    assert gpu_request("2", lambda: pytest.fail("types are read for a name alone")) == ({"nvidia.com/gpu": "2"}, ())
    resources, requirements = gpu_request("L4:4", lambda: ALL)
    assert resources == {"nvidia.com/gpu": "4"}
    assert requirements == [{"key": GPU, "operator": "In", "values": ["l4"]}]
    other = node_type("cudo.v100", "4", "16Gi", properties={"gpu-model": "L4"}, resources={"nvidia.com/gpu": "1"})
    for text, types, words in (("t4", ALL, "there are l4"), ("l4", [*ALL, other], "name one by --provider")):
        with pytest.raises(BadInput, match=words):
            gpu_request(text, partial(iter, types))
    for text in ("l4:", ":2", "l4:0", "0"):
        with pytest.raises(BadInput, match=r"^--gpu "):
            gpus(text)


def test_a_claim_is_created_with_gpus(cli: Any, api: Any) -> None:
    api.answer("GET", "/v1/node-types", {"items": [L4.document()], "next_page_token": None})
    cli("claim", "create", "--cluster", "demo", "--gpu", "l4:1")
    (sent,) = api.bodies("POST")
    assert sent["resources"] == {"nvidia.com/gpu": "1"}
    assert sent["requirements"] == [{"key": GPU, "operator": "In", "values": ["l4"]}]


def test_what_several_providers_have_alike_is_one_row_of_a_table(cli: Any, api: Any) -> None:
    twin = node_type("eks.t3.small", "2", "2Gi", 0.02)
    dearer = node_type("other.t3.small", "2", "2Gi", 0.03)
    items = [each.document() for each in (SMALL, twin, dearer, L4)]
    api.answer("GET", "/v1/node-types", {"items": items, "next_page_token": None})
    text = cli("type", "list").stdout
    assert [line.split()[:2] for line in text.splitlines()] == [
        ["NAME", "ALSO"],
        ["ec2.t3.small", "eks,"],
        ["ec2.g6.xlarge", "-"],
    ]
    # another price is said: such nodes have another disk
    assert " eks, other (0.0300) " in text
    assert cli("type", "list", "--max-price", "0.02", "-o", "name").stdout.split() == ["ec2.t3.small", "eks.t3.small"]
    assert "ALSO OF" not in cli("type", "list", "--gpu", "l4").stdout


def test_the_price_is_that_of_a_node_that_nobody_asks_to_be_spot(cli: Any, api: Any) -> None:
    api.answer("GET", "/v1/node-types", {"items": [SPOT.document(), SMALL.document()], "next_page_token": None})
    lines = [line.split() for line in cli("type", "list").stdout.splitlines()]
    assert [line[3:5] for line in lines] == [["USD/HOUR", "SPOT"], ["0.0960", "0.0400"], ["0.0200", "-"]]
