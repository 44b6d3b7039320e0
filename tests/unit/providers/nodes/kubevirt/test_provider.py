"""Machines of KubeVirt: scarcity, failures, what people do to them, drift, addresses, and nothing that is left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stockyard.domain.records import Name
from stockyard.errors import InsufficientCapacity, NodeCouldNotBeProvisioned
from stockyard.providers.nodes.kubevirt.addresses import PREFIX
from tests.harness.kubevirt.host import IMAGE
from tests.harness.worlds.kubernetes_host import NAMESPACE
from tests.unit.providers.nodes.kubevirt.yard import SMALL, Yard

NETWORK = {
    "kubevirt.vcluster.com/network-cidr": "192.168.7.1/24",
    "kubevirt.vcluster.com/network-ip-range": "192.168.7.10-192.168.7.12",
    "kubevirt.vcluster.com/network-nameservers": "192.0.2.53, 192.0.2.54",
}


def test_claims_that_are_made_and_deleted_leave_nothing(
    soaking: bool, record_property: Callable[[str, object], None]
) -> None:
    yard, count = Yard(), 50 if soaking else 8
    for number in range(count):
        yard.source.launch(yard.work(number))
    names = {yard.launch(number).facts["machine_id"] for number in range(count)}
    object_count = len(yard.host.leftovers())
    assert (len(names), object_count) == (count, 5 * count), "machine, instance, DataVolume, claim of a volume, Secret"
    for number in range(count):
        yard.source.terminate(yard.work(number))
    for number in range(count):
        yard.terminate(number)
    record_property(
        "figure:kubevirt_claims", {"claims": count, "objects": object_count, "left": len(yard.host.leftovers())}
    )
    assert yard.host.leftovers() == []
    assert all(not yard.work(number).ledger.lines() for number in range(count))


def test_a_quota_that_is_used_up_is_scarcity_and_leaves_nothing() -> None:
    yard = Yard()
    quota = {"count/virtualmachines.kubevirt.io": "1", "count/secrets": "9"}
    meta = {"name": "small-namespace", "namespace": NAMESPACE}
    yard.host.api.install([{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": quota}}])
    yard.launch(1)
    before = yard.host.leftovers()
    with pytest.raises(InsufficientCapacity, match="exceeded quota small-namespace") as refused:
        yard.launch(2)
    assert refused.value.refused == refused.value.own == (("small", "on-demand", "global"),)
    assert yard.host.leftovers() == before
    assert list(yard.work(2).ledger.lines()) == []
    yard.terminate(1)
    assert yard.launch(2).done


def test_a_quota_of_pods_is_scarcity_too() -> None:
    yard = Yard()
    yard.host.controllers.refused_pods.add(NAMESPACE)
    with pytest.raises(InsufficientCapacity, match="exceeded quota: pods"):
        yard.launch()
    yard.terminate()
    assert yard.host.leftovers() == []


def test_a_machine_without_a_node_is_given_up_after_two_minutes() -> None:
    yard = Yard()
    yard.host.node("n1", cpu="1500m", memory="64Gi")
    yard.launch(1)
    started = yard.clock.now()
    with pytest.raises(InsufficientCapacity, match=r"ErrorUnschedulable: 0/3 nodes") as refused:
        yard.launch(2)
    assert 120 <= (yard.clock.now() - started).total_seconds() < 180
    assert refused.value.own == (("small", "on-demand", "global"),)
    yard.terminate(2)
    yard.terminate(1)
    assert yard.host.leftovers() == []


def test_an_image_that_cannot_be_had_fails_the_claim_with_the_reason() -> None:
    for image, settings, words in (
        ("docker://quay.io/containerdisks/ubuntu:22.04", IMAGE, "DataVolumeError: Unable to connect"),
        ("example.test/root", {}, "ImagePullBackOff: Back-off pulling image"),
    ):
        volume = {"name": "root", "containerDisk": {"image": "example.test/root"}}
        change = {"spec": {"template": {"spec": {"volumes": [] if settings else [volume]}}}}
        yard = Yard({"name": "small", "properties": settings, "mergeVirtualMachineTemplate": change})
        yard.host.controllers.broken_images.add(image)
        with pytest.raises(NodeCouldNotBeProvisioned, match=words):
            yard.launch()
        yard.terminate()
        assert yard.host.leftovers() == []


def test_a_machine_that_a_person_deleted_is_noticed_by_one_look() -> None:
    yard = Yard()
    name = yard.launch().facts["machine_id"]
    assert yard.source.look(yard.work()).state == "running"
    caller = yard.host.controllers.caller
    caller.call("DELETE", f"/apis/kubevirt.io/v1/namespaces/{NAMESPACE}/virtualmachines/{name}")
    assert yard.source.look(yard.work()).state == "gone", "it is being deleted, and never comes back"
    yard.clock.advance(60)
    yard.host.settle()
    assert yard.source.look(yard.work()).state == "gone"
    with pytest.raises(NodeCouldNotBeProvisioned, match="no machine"):
        yard.source.power(yard.work(), "Off")
    yard.terminate()
    assert yard.host.leftovers() == []


def test_a_machine_of_that_name_that_is_not_ours_is_never_touched() -> None:
    yard = Yard()
    name = yard.launch().facts["machine_id"]
    path = f"/apis/kubevirt.io/v1/namespaces/{NAMESPACE}/virtualmachines/{name}"
    body = {"metadata": {"labels": {"stockyard.dev/resource": "somebody-else"}}}
    yard.host.controllers.caller.call("PATCH", path, body, "application/merge-patch+json")
    with pytest.raises(Exception, match="There is another VirtualMachine"):
        yard.source.terminate(yard.work())
    assert yard.host.machines() == [name]


def test_what_a_template_would_change_is_drift_and_what_people_change_too() -> None:
    yard = Yard()
    yard.launch()
    mark = yard.source.template_fingerprint(yard.provider)
    assert yard.source.drift(yard.work()) is None
    template = {"spec": {"template": {"spec": {"domain": {"resources": {"requests": {"cpu": "2", "memory": "2Gi"}}}}}}}
    yard.change(virtualMachineTemplate=template)
    assert yard.source.template_fingerprint(yard.provider) != mark
    words = yard.source.drift(yard.work())
    assert words is not None
    assert "spec.template.spec.domain.resources.requests.cpu" in words
    yard.change(virtualMachineTemplate={"spec": {"template": {"spec": {"domain": {"novelty": 1}}}}})
    assert yard.source.drift(yard.work()) is None, (
        "no machine could be made from it: nothing is better than what stands"
    )


def test_each_machine_has_an_address_of_its_own_and_gives_it_back() -> None:
    yard = Yard({**SMALL, "properties": {**IMAGE, **NETWORK}})
    for number in range(3):
        yard.launch(number)
    names = list(yard.store.list(Name, prefix=PREFIX, limit=10).items)
    assert sorted(name.id.rpartition("/")[2] for name in names) == [f"192.168.7.{n}" for n in (10, 11, 12)]
    with pytest.raises(InsufficientCapacity, match=r"network-ip-range: every address of .* is in use"):
        yard.launch(3)
    yard.terminate(1)
    yard.launch(3)
    for number in (0, 2, 3):
        yard.terminate(number)
    assert list(yard.store.list(Name, prefix=PREFIX, limit=10).items) == []
    assert yard.host.leftovers() == []


def test_a_guest_is_told_its_network() -> None:
    import base64
    import json

    yard = Yard({**SMALL, "properties": {**IMAGE, **NETWORK}})
    name = yard.launch().facts["machine_id"]
    secret: dict[str, Any] = yard.host.objects("secrets")[f"{NAMESPACE}/{name}-first-boot"]["data"]
    network = json.loads(base64.b64decode(secret["networkdata"]))
    (card,) = network["ethernets"].values()
    assert list(network["ethernets"]) == ["enp1s0"]
    assert card["addresses"][0] in {f"192.168.7.{number}/24" for number in (10, 11, 12)}
    assert card["routes"] == [{"to": "0.0.0.0/0", "via": "192.168.7.1"}]
    assert card["nameservers"] == {"addresses": ["192.0.2.53", "192.0.2.54"]}
    owner = yard.host.objects("secrets")[f"{NAMESPACE}/{name}-first-boot"]["metadata"]["ownerReferences"]
    assert [each["kind"] for each in owner] == ["VirtualMachine"]
