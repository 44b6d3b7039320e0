"""Room of a host's nodes: as many machines as are counted come up, no more, and who may not look knows ``maxCapacity``
alone."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.records import PriceSheet
from stockyard.domain.values import ids
from stockyard.errors import InsufficientCapacity
from stockyard.operations.node_providers.types import get_type
from stockyard.ports import Create, Put
from stockyard.providers.clouds.kubernetes import host_sheets, node_room
from stockyard.providers.clouds.kubernetes.features import CAPACITY, KUBEVIRT
from stockyard.providers.clouds.kubernetes.reach import NETWORK
from stockyard.providers.nodes.kubevirt.provider import KubeVirtNodes
from tests.harness.kubevirt.host import CONFIG, IMAGE, VirtualMachineHost, block
from tests.harness.worlds.kubernetes_host import NAMESPACE, NUMBER, SITE, TENANT
from tests.harness.worlds.node_source_cases import CLUSTER, cluster_of
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.conftest import make_world
from tests.unit.operations.nodes import Nodes
from tests.unit.providers.nodes.kubevirt.yard import MOMENT, Yard

GPU = "nvidia.com/A100"
TAINT = {"key": "only", "value": "gpus", "effect": "NoSchedule"}
CASES = 40
"""Of generated hosts in the soak; a tenth of them otherwise."""


class Looked(VirtualMachineHost):
    """A host whose owner lets its nodes and pods be listed."""

    features = (KUBEVIRT, CAPACITY)

    def close_to_looks(self) -> None:
        """Take the right away again."""
        with self.api.locked_store() as store:
            for key in [key for key in store.objects if key.resource == "clusterroles"]:
                del store.objects[key]


def small(**machine: Any) -> dict[str, Any]:
    """A node type whose template has these fields of a machine's specification."""
    change = {"spec": {"template": {"spec": machine}}}
    return {"name": "small", "properties": IMAGE, "mergeVirtualMachineTemplate": change}


def sheet(host: VirtualMachineHost) -> bytes:
    host.settle()
    return host.cloud().offers(host.account, TENANT, MOMENT)


def total(yard: Yard, name: str = "small") -> int | None:
    totals = yard.source.with_sheet(sheet(yard.host)).totals(yard.provider)
    return None if totals is None else totals[name]


def generated(chance: random.Random) -> Yard:
    """A host of some nodes with other people's pods, and a type of some size."""
    host, with_gpu = Looked(), chance.random() < 0.4
    for number in range(chance.randint(1, 4)):
        size = {"cpu": f"{chance.randint(1, 9) * 500}m", "memory": f"{chance.randint(2, 24) * 512}Mi"}
        gpus = {GPU: str(chance.randint(0, 3))} if chance.random() < 0.6 else {}
        taints = [TAINT] if gpus and chance.random() < 0.5 else []
        host.node(f"n{number}", taints, pods=str(chance.randint(2, 6)), **size, **gpus)
        container = {"name": "a", "image": "a", "resources": {"requests": {"cpu": "200m", "memory": "256Mi"}}}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"of-others-{number}", "namespace": NAMESPACE}}
        host.api.install([{**pod, "spec": {"containers": [container], "nodeName": f"n{number}"}}])
    requests = {"cpu": chance.choice(["250m", "500m", "1"]), "memory": chance.choice(["512Mi", "1Gi", "2Gi"])}
    domain: dict[str, Any] = {"resources": {"requests": requests}}
    if with_gpu:
        domain["devices"] = {"gpus": [{"name": "g", "deviceName": GPU}]}
    if chance.random() < 0.3:
        requests["cpu"] = None  # a part of a core is asked for each vCPU
        domain["cpu"] = {"cores": 2}
    machine: dict[str, Any] = {"domain": domain}
    if with_gpu and chance.random() < 0.7:
        machine["tolerations"] = [{"key": "only", "operator": "Exists"}]
    if chance.random() < 0.3:
        machine["nodeSelector"] = {"kubernetes.io/hostname": "n0"}
    return Yard(small(**machine), host=host)


def test_as_many_machines_as_are_counted_come_up_and_no_more(
    soaking: bool, seed: int, record_property: Callable[[str, object], None]
) -> None:
    counts: list[int] = []
    for case in range(CASES if soaking else CASES // 10):
        yard = generated(random.Random(f"{seed}/{case}"))
        most = total(yard)
        assert most is not None
        for number in range(most):
            yard.launch(number)
            assert total(yard) == most, "who has come is counted as one of them"
        with pytest.raises(InsufficientCapacity, match="ErrorUnschedulable"):
            yard.launch(most)
        counts.append(most)
    record_property("figure:kubevirt_room", {"hosts": len(counts), "by_count": dict(Counter(counts))})
    assert not soaking or len(set(counts)) > 3


def test_machines_that_are_off_or_gone_leave_the_count_as_it_was() -> None:
    yard = Yard(host=Looked())
    yard.host.node("n1", cpu="3", memory="64Gi")
    yard.host.node("elsewhere", cpu="3", memory="64Gi", taints=[TAINT])
    assert total(yard) == 3
    yard.launch()
    while not yard.source.power(yard.work(), "Off").done:
        yard.clock.advance(5)
    assert total(yard) == 3, "its claim holds its place, and it has none on a node"
    yard.terminate()
    assert total(yard) == 3
    other = replace(yard.provider, id="npr_01KDVJXQ80000000000000000B")
    yard.launch(2)
    assert yard.source.with_sheet(sheet(yard.host)).totals(other) == {"small": 2}, "another provider has none of them"


def test_who_may_not_look_has_the_documents_bound_alone_and_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Yard()
    plain.host.node("n1", cpu="3", memory="64Gi")
    assert (total(plain), host_sheets.read(sheet(plain.host)).rooms) == (None, None)
    host = Looked()
    yard = Yard(host=host)
    yard.host.node("n1", cpu="3", memory="64Gi")
    assert yard.host.cloud().verify(yard.host.account, TENANT).warnings == ()
    monkeypatch.setattr(node_room, "MOST_NODES", 0)
    assert "more than 0 nodes" in _warning(yard)
    monkeypatch.undo()
    host.close_to_looks()
    verification = yard.host.cloud().verify(yard.host.account, TENANT)
    (warning,) = verification.warnings
    assert verification.works
    assert "may not: list nodes; list pods in the whole host" in warning
    assert "403 Forbidden" in _warning(yard)
    assert yard.source.with_sheet(sheet(yard.host)).counted_at(yard.provider) is None
    yard.launch()


def _warning(yard: Yard) -> str:
    source = yard.source.with_sheet(sheet(yard.host))
    assert source.totals(yard.provider) is None
    (warning,) = source.inspect(yard.provider, yard.host.account)
    assert warning.warning
    return warning.detail


def test_a_site_lets_looks_through_where_its_owner_says_so() -> None:
    yard = Yard(host=Looked())
    yard.host.node("n1", cpu="3", memory="64Gi")
    attributes = {"via": SITE, "namespaces": [NAMESPACE], "features": list(yard.host.features)}
    yard.host.account = replace(yard.host.account, attributes=attributes, secrets=())
    assert total(yard) == 3
    assert {line for line in yard.host.allowed_lines if line.startswith("GET /api/v1/")} >= {
        f"GET /api/v1/{resource}?limit,continue,fieldSelector" for resource in ("nodes", "pods")
    }
    yard.host.features = (KUBEVIRT,)  # the owner's list is an older one
    assert "the allow-list has no GET /api/v1/nodes" in _warning(yard)


def test_a_type_without_room_is_told_at_its_field() -> None:
    yard = Yard(host=Looked())
    (warning,) = yard.source.with_sheet(sheet(yard.host)).inspect(yard.provider, yard.host.account)
    assert (warning.pointer, warning.warning) == ("/spec/nodeTypes/0", True)


@pytest.mark.parametrize(("most", "placed"), [(None, 3), (2, 2), (9, 3)])
def test_claims_beyond_the_room_wait_as_scarce_and_say_so(most: int | None, placed: int) -> None:
    world = make_world()
    host = Looked(clock=world.clock)
    host.node("n1", cpu="3500m", memory="64Gi")
    nodes = Nodes.of(world.registry, world.services, world.clock)
    store, moment = world.services.store, world.services.now()
    sold = PriceSheet(ids.account_sheet(NUMBER), moment, sheet(host))
    store.commit(Create(host.account), Put(sold), Create(cluster_of("aws", 1)))
    limits: Mapping[str, Any] = {} if most is None else {"maxCapacity": most}
    nodes.provider("vms", kind="kubeVirt", block=block({**small(), **limits}), properties={NETWORK: "routed"})
    source = KubeVirtNodes(CONFIG, host.access(), lambda _tenant: store)
    nodes.services = with_ports(nodes.services, node_sources={"kubeVirt": source}, clouds={"kubernetes": host.cloud()})
    claims = [nodes.claim(f"c{number}", cluster_ref=CLUSTER) for number in range(5)]
    nodes.schedule()
    after = [nodes.now(claim) for claim in claims]
    assert Counter(claim.placement is not None for claim in after) == {True: placed, False: 5 - placed}
    assert {claim.reason for claim in after if claim.placement is None} == {"NoCapacity"}
    view = get_type(nodes.services, "vms.small")
    assert view["capacity"] == {
        "total": placed,
        "claimed": placed,
        "available": 0,
        "counted_at": moment,
    }
