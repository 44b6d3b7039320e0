"""Documents of head nodes: what they are refused for, which hosts they name first, types and stock."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from local.bcm.inventory import device, group
from stockyard.domain.records import NodeProvider
from stockyard.ports import Finding
from stockyard.providers.clouds.bcm import sheets
from stockyard.providers.nodes.bcm.configuration import BcmNodesConfig
from stockyard.providers.nodes.bcm.provider import BcmNodes
from tests.harness.bcm.hands import MOMENT, provider
from tests.harness.bcm.yard import NUMBER, WORD, HeadYard, bcm_account

CPU = {"name": "cpu", "nodeGroups": ["cpu"]}


def source(yard: HeadYard, *, sheet: bool = True) -> BcmNodes:
    """The source with the inventory of now."""
    nodes = BcmNodes(BcmNodesConfig("https://api.example.test"), yard.access())
    return nodes.with_sheet(yard.cloud().offers(yard.account, "acme", MOMENT)) if sheet else nodes


def faults(spec: NodeProvider, yard: HeadYard | None = None) -> dict[str, str]:
    """Faults of the document by pointer."""
    yard = yard or HeadYard()
    findings = source(yard).inspect(spec, yard.account)
    return {finding.pointer: finding.detail for finding in findings if not finding.warning}


def warnings(findings: Any) -> dict[str, str]:
    """Remarks by pointer."""
    return {finding.pointer: finding.detail for finding in findings if finding.warning}


@pytest.mark.parametrize(
    ("entry", "pointer"),
    [
        ({}, "/spec/nodeTypes/0/nodes"),
        ({"nodes": []}, "/spec/nodeTypes/0/nodes"),
        ({"nodes": ["all"]}, "/spec/nodeTypes/0/nodes/0"),
        ({"nodes": ["node001", "ALL"]}, "/spec/nodeTypes/0/nodes/1"),
        ({"nodes": ["node*"]}, "/spec/nodeTypes/0/nodes/0"),
        ({"nodes": ["node001,node002"]}, "/spec/nodeTypes/0/nodes/0"),
        ({"nodes": ["node[001-004]"]}, "/spec/nodeTypes/0/nodes/0"),
        ({"nodeGroups": ["all"]}, "/spec/nodeTypes/0/nodeGroups/0"),
        ({"nodes": ["master"]}, "/spec/nodeTypes/0/nodes/0"),
        (
            {**CPU, "properties": {"bcm.vcluster.com/network-interface": "bond0"}},
            "/spec/nodeTypes/0/properties/bcm.vcluster.com~1network-interface",
        ),
        (
            {**CPU, "properties": {"netris.vcluster.com/server-cluster": "x"}},
            "/spec/nodeTypes/0/properties/netris.vcluster.com~1server-cluster",
        ),
        (
            {**CPU, "properties": {"stockyard.dev/power-off-when-free": "yes"}},
            "/spec/nodeTypes/0/properties/stockyard.dev~1power-off-when-free",
        ),
    ],
)
def test_a_document_is_refused_by_its_field(entry: dict[str, Any], pointer: str) -> None:
    assert set(faults(provider({"name": "t", **entry}))) == {pointer}


def test_a_property_of_the_whole_provider_is_refused_beside_its_block() -> None:
    spec = provider(CPU, **{"netris.vcluster.com/server-cluster": "x"})
    assert set(faults(spec)) == {"/properties/netris.vcluster.com~1server-cluster"}


def test_the_endpoint_is_the_accounts() -> None:
    spec = provider(CPU)
    assert faults(spec) == {}
    spec.spec["bcm"]["endpoint"] = "https://another.example.test:8081"
    assert set(faults(spec)) == {"/spec/endpoint"}
    yard = HeadYard()
    yard.through_site()
    assert faults(spec, yard) == {}, "behind a site the connector knows it"


def test_one_host_is_of_one_type() -> None:
    twice = provider({"name": "a", "nodes": ["node001"]}, {"name": "b", "nodes": ["node001", "node002"]})
    assert set(faults(twice)) == {"/spec/nodeTypes/1/nodes/0"}
    mixed = provider({"name": "a", "nodeGroups": ["cpu"]}, {"name": "b", "nodes": ["node001"]})
    nodes = source(HeadYard())
    assert "of type a and of b" in warnings(nodes.inspect(mixed, bcm_account()))["/spec/nodeTypes/0"]
    assert nodes.totals(mixed) == {"a": 2, "b": 0}


def test_a_dry_run_names_every_host() -> None:
    yard = HeadYard()
    spec = provider(CPU, {"name": "gpu", "nodes": ["node009"]})
    remarks = source(yard).hosts_of_types(spec)
    assert remarks == [
        Finding(
            "/spec/nodeTypes/0",
            "Stockyard may wipe, install and switch node001, node002. It leaves alone master (it is no compute node), "
            "private (its notes have no stockyard-may-install).",
            warning=True,
        ),
        Finding(
            "/spec/nodeTypes/1",
            "Stockyard may wipe, install and switch no host.",
            warning=True,
        ),
    ]
    assert "has no node009" in warnings(source(yard).inspect(spec, yard.account))["/spec/nodeTypes/1/nodes/0"]
    assert "not known yet" in source(yard, sheet=False).hosts_of_types(spec)[0].detail


def test_resources_and_capacity_are_the_inventorys_and_the_documents_words_win() -> None:
    yard = HeadYard(names=())
    for number, cores in ((1, 64), (2, 48)):
        entity = device(f"node00{number}", number, notes=WORD)
        yard.head_node.add([entity], cores=cores, memory_gib=512, gpus=8)
    yard.head_node.groups.append(group("gpu", ["node001", "node002", "private"]))
    spec = provider({"name": "gpu", "nodeGroups": ["gpu"], "resources": {"memory": "500Gi"}})
    nodes = source(yard)
    (node_type,) = nodes.node_types(spec, yard.account)
    assert (node_type.available, node_type.owned, node_type.limited) == (True, True, True)
    assert node_type.capacity["cpu"] == 48_000, "a claim may get any of them"
    assert (node_type.capacity["memory"], node_type.capacity["nvidia.com/gpu"]) == (500 * 2**30 * 1000, 8_000)
    assert (nodes.totals(spec), nodes.counted_at(spec)) == ({"gpu": 2}, MOMENT)
    bare = source(yard, sheet=False)
    (unknown,) = bare.node_types(spec, yard.account)
    assert (unknown.available, bare.totals(spec), bare.counted_at(spec)) == (False, {}, None)


def test_a_release_that_tells_neither_groups_nor_hardware_nor_status() -> None:
    yard = HeadYard(tells=False)
    spec = provider(CPU)
    assert "does not tell its groups" in faults(spec, yard)["/spec/nodeTypes/0/nodeGroups/0"]
    named = provider({"name": "t", "nodes": ["node001"]})
    assert faults(named, yard) == {}
    (node_type,) = source(yard).node_types(named, yard.account)
    assert not node_type.available, "the document has to say its resources"
    off = provider({"name": "t", "nodes": ["node001"], "properties": {"stockyard.dev/power-off-when-free": "true"}})
    assert set(faults(off, yard)) == {"/spec/nodeTypes/0/properties"}
    verification = yard.cloud().verify(yard.account, "acme")
    assert verification.works
    assert len(verification.warnings) == 4


def test_a_sheet_is_read_as_it_was_written_and_another_form_is_none() -> None:
    yard = HeadYard()
    data = yard.cloud().offers(yard.account, "acme", MOMENT)
    assert sheets.written(sheets.read(data)) == data
    assert (
        source(yard, sheet=False).with_sheet(b"\x1f\x8bnothing").node_types(provider(CPU), None)[0].available is False
    )
    broken = HeadYard()
    broken.head_node.information = {key: {"cores": "many"} for key in broken.head_node.information}
    assert all(not host.resources for host in sheets.read(broken.cloud().offers(broken.account, "acme", MOMENT)).hosts)


def test_a_verification_names_the_hosts_and_what_is_missing() -> None:
    yard = HeadYard()
    verification = yard.cloud().verify(yard.account, "acme")
    assert verification.works
    assert "Stockyard may install node001, node002." in verification.message
    assert "never been tried on a real head node" in verification.warnings[0]
    empty = HeadYard(names=())
    assert "No node's notes have" in empty.cloud().verify(empty.account, "acme").message
    yard.head_node.page = lambda: "<html>getDevices getNode updateDevice</html>"
    refused = yard.cloud().verify(yard.account, "acme")
    assert (refused.works, refused.message) == (False, "The head node's page /api has no powerOperation.")


def test_hosts_are_leased_by_their_head_node() -> None:
    nodes, spec = source(HeadYard()), provider(CPU)
    inventories = {nodes.host_inventory(spec, account) for account in (bcm_account(), bcm_account("9"))}
    assert inventories == {"bcm-head.example.test:8081"}
    through = replace(bcm_account(), attributes={"via": "basement"})
    assert nodes.host_inventory(spec, through) == "bcm-site-basement"
    assert NUMBER not in inventories.pop().split("-")
