"""Faults of documents: read in them, and found by their host; each at the place where it was written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.errors import VendorError
from stockyard.providers.clouds.kubernetes.reach import NETWORK, out_of_reach
from stockyard.providers.nodes.kubevirt.inspection import findings
from stockyard.providers.nodes.kubevirt.properties import DOMAIN, faults
from tests.harness.kubevirt.host import IMAGE
from tests.unit.providers.nodes.kubevirt.yard import SMALL, Yard

CIDR, RANGE, SERVERS, SIZE = (
    f"{DOMAIN}network-cidr",
    f"{DOMAIN}network-ip-range",
    f"{DOMAIN}network-nameservers",
    f"{DOMAIN}root-disk-size",
)
ATTACHMENT = f"{DOMAIN}network-attachment-definition"
SPEC = "spec/template/spec"


def machine(**spec: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": spec}}}


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({f"{DOMAIN}image-url": "ftp://x"}, f"{DOMAIN}image-url"),
        ({f"{DOMAIN}image-datasource": "a/b/c"}, f"{DOMAIN}image-datasource"),
        ({SIZE: ""}, SIZE),
        ({SIZE: "0"}, SIZE),
        ({SIZE: "big"}, SIZE),
        ({f"{DOMAIN}root-disk-template": "[]"}, f"{DOMAIN}root-disk-template"),
        ({f"{DOMAIN}image-checksum": "sha256:0"}, f"{DOMAIN}image-checksum"),
        ({CIDR: "192.168.7.1"}, CIDR),
        ({CIDR: "192.168.7.1/24"}, SERVERS),
        ({SERVERS: "192.0.2.1"}, SERVERS),
        ({CIDR: "192.168.7.1/24", SERVERS: "dns.example"}, SERVERS),
        ({CIDR: "192.168.7.1/24", SERVERS: "192.0.2.1", RANGE: "192.168.8.1"}, RANGE),
        ({CIDR: "192.168.7.1/24", SERVERS: "192.0.2.1", RANGE: "192.168.7.9-192.168.7.2"}, RANGE),
        ({CIDR: "192.168.7.1/24", SERVERS: "192.0.2.1", RANGE: "192.168.7.1"}, RANGE),
        ({f"{DOMAIN}network-data": "%%"}, f"{DOMAIN}network-data"),
        ({f"{DOMAIN}network-interface": "a card"}, f"{DOMAIN}network-interface"),
        ({f"{DOMAIN}interface-binding": "bridge"}, f"{DOMAIN}interface-binding"),
        ({ATTACHMENT: "n", f"{DOMAIN}interface-binding": "x"}, f"{DOMAIN}interface-binding"),
        ({ATTACHMENT: "n", f"{DOMAIN}multus-default": "yes"}, f"{DOMAIN}multus-default"),
        ({"netris.vcluster.com/server-cluster": "a"}, "netris.vcluster.com/server-cluster"),
    ],
)  # fmt: skip
def test_a_bad_setting_is_named(changes: dict[str, str], key: str) -> None:
    assert next(faults({**IMAGE, **changes}))[0] == key


def pointers(yard: Yard, **fields: Any) -> list[str]:
    provider = yard.provider_of(SMALL, **fields)
    return [each.pointer for each in findings(provider, yard.host.account) if not each.warning]


def test_faults_are_read_in_the_document() -> None:
    yard = Yard()
    assert pointers(yard) == []
    assert pointers(yard, deploy={"kubevirt": {"enabled": True}}) == ["/spec/deploy/kubevirt/enabled"]
    assert pointers(yard, deploy={"kubevirt": {"enabled": False}}) == []
    assert pointers(yard, namespaceStrategy="VirtualCluster") == ["/spec/namespaceStrategy"]
    assert pointers(yard, clusterRef={"cluster": "3", "namespace": "other"}) == ["/spec/clusterRef/namespace"]
    assert pointers(yard, properties={NETWORK: "wide"}) == ["/properties/stockyard.dev~1network"]
    assert pointers(yard, virtualMachineTemplate={**machine(domain={}), "kind": "Pod"}) == [
        "/spec/virtualMachineTemplate/kind"
    ]
    for wrong, pointer in (
        ({"spec": []}, "spec"),
        (machine(domain="x"), f"{SPEC}/domain"),
        (machine(domain={}, volumes={"a": 1}), f"{SPEC}/volumes"),
        (machine(domain={"devices": {"disks": ["a"]}}), f"{SPEC}/domain/devices/disks"),
        ({**machine(domain={}), "metadata": {"labels": []}}, "metadata/labels"),
    ):
        assert pointers(yard, virtualMachineTemplate=wrong) == [f"/spec/virtualMachineTemplate/{pointer}"]
    without = yard.provider_of({"name": "bare", "mergeVirtualMachineTemplate": {}})
    assert [each.pointer for each in findings(without, None)] == ["/spec/nodeTypes/0/mergeVirtualMachineTemplate"]
    (commands,) = findings(yard.provider_of(SMALL, deploy={"kubevirt": {"enabled": True}}), None)
    assert commands.detail.count("kubectl apply -f https://") == 2
    yard.host.account.attributes["features"] = ["base"]
    assert pointers(yard) == ["/spec/clusterRef/cluster"]


def test_the_host_names_the_field_where_it_was_written() -> None:
    yard = Yard()
    assert yard.judged() == {}
    base = yard.provider.spec["kubeVirt"]["virtualMachineTemplate"]
    wrong = {**base, "spec": {**base["spec"], "novelty": 1}}
    (pointer, text), *more = yard.judged(yard.provider_of(SMALL, virtualMachineTemplate=wrong)).items()
    assert (pointer, more) == ("/spec/virtualMachineTemplate/spec/novelty", [])
    assert text == "The host refuses spec.novelty of node type small: field not declared in schema."
    for change, pointer in (
        (machine(volumes=[{"name": "a", "emptyDisk": {"capacity": "1Gi"}, "size": 1}]), f"{SPEC}/volumes/0/size"),
        (machine(domain={"memory": {"guest": "lots"}}), f"{SPEC}/domain/memory/guest"),
        (machine(networks=[{"name": "alone", "pod": {}}]), f"{SPEC}/networks/0/name"),
        ({"spec": {"runStrategy": 7}}, None),
    ):
        entry = {**SMALL, "mergeVirtualMachineTemplate": change}
        expected = [] if pointer is None else [f"/spec/nodeTypes/1/mergeVirtualMachineTemplate/{pointer}"]
        assert list(yard.judged(yard.provider_of(SMALL, {**entry, "name": "other"}))) == expected
    assert yard.host.leftovers() == [], "a trial makes nothing"


def test_a_host_without_kubevirt_or_without_the_namespace_says_so() -> None:
    yard = Yard()
    nowhere = yard.provider_of(SMALL, clusterRef={"cluster": "3", "namespace": "nowhere"})
    yard.host.grant_everywhere()
    assert yard.judged(nowhere) == {"/spec/clusterRef/namespace": "The host has no namespace nowhere."}
    yard.host.is_bare = True
    yard.source = yard.new_source()
    (text,) = yard.judged().values()
    assert "has no KubeVirt. Its owner installs it: kubectl apply" in text


def test_a_quota_is_no_fault_of_a_template_and_a_right_that_is_missing_is_said() -> None:
    yard = Yard()
    yard.host.full.add("small")
    assert yard.judged() == {}
    yard.host.full.clear()
    yard.host.without("patch", "virtualmachines")
    with pytest.raises(VendorError, match="403 Forbidden"):
        yard.judged()


def test_machines_of_a_private_network_are_out_of_reach_of_clusters_elsewhere() -> None:
    yard = Yard()
    assert out_of_reach(yard.provider, yard.cluster) is None
    elsewhere = replace(yard.cluster, provider="aws")
    why = out_of_reach(yard.provider, elsewhere)
    assert why is not None
    assert "needs an overlay" in why
    routed = yard.provider_of(SMALL, properties={NETWORK: "routed"})
    assert out_of_reach(routed, elsewhere) is None
    assert out_of_reach(routed, None) is not None


def test_equal_templates_are_tried_once_and_no_more_than_ten() -> None:
    yard = Yard()
    calls = yard.host.api.calls
    for types, count in (
        ([{**SMALL, "name": f"t{n}"} for n in range(30)], 1),
        ([{**SMALL, "name": f"t{n}", "resources": {"cpu": str(n + 1), "memory": "2Gi"}} for n in range(30)], 10),
    ):
        before = len(calls)
        assert yard.judged(yard.provider_of(*types)) == {}
        assert sum(call.action.verb == "patch" for call in calls[before:]) == count
