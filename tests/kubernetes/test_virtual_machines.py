"""Virtual machines on a real API server with the real definitions of KubeVirt: the conformance suite of node sources,
direct and through a site, faults of templates, and nothing that is left.

The same on the simulated API is in ``tests/contracts``, ``tests/unit/providers/nodes/kubevirt`` and
``tests/workflows``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from local.kubernetes.real.client import Client, Refused
from local.kubevirt import VirtControllers, kinds
from local.kubevirt.controllers import Seconds
from local.testing.memory_store import MemoryStore
from stockyard.domain.records import NodeProvider
from stockyard.errors import InsufficientCapacity
from stockyard.providers.clouds.kubernetes import host_template
from stockyard.providers.clouds.kubernetes.cloud import KubernetesHosts
from stockyard.providers.clouds.kubernetes.features import CAPACITY, KUBEVIRT
from stockyard.providers.clouds.kubernetes.node_room import SCHEDULABLE
from stockyard.providers.nodes.kubevirt.provider import KubeVirtNodes
from tests.contracts import test_node_source as suite
from tests.harness.kubevirt.host import CONFIG, IMAGE, RESOURCES, WithKubeVirt, block
from tests.harness.worlds.kubernetes_host import NAMESPACE, SITE, TENANT
from tests.harness.worlds.node_source_cases import FIRST, MOMENT, PROVIDER, SECOND, SOURCES, Case
from tests.kubernetes.conftest import Cluster
from tests.kubernetes.hosts import RealHost
from tests.kubernetes.rigs import until

REAL = "kubeVirt on a real API server"
_MOST_STEPS = 8
_GROUPS = {"virtualmachines": "kubevirt.io/v1", "virtualmachineinstances": "kubevirt.io/v1"}
_GROUPS |= {"datavolumes": "cdi.kubevirt.io/v1beta1"}
test_node_types = suite.test_node_types_belong_to_provider_and_are_available
test_launch = suite.test_launch_is_idempotent_and_returns_machine
test_token = suite.test_a_machine_token_is_told_to_one_machine_and_kept_in_no_record
test_running = suite.test_launched_machine_runs_after_a_while
test_next_option = suite.test_launch_uses_next_option_when_first_is_full
test_refused_launch = suite.test_refused_launch_names_offerings_and_leaves_nothing
test_stale_operation = suite.test_stale_operation_launches_nothing
test_unscheduled = suite.test_launch_of_unscheduled_claim_is_refused
test_power = suite.test_power_states_are_switched
test_termination = suite.test_termination_leaves_nothing
test_environment = suite.test_environment_preparation_and_removal_are_idempotent
test_orphans = suite.test_orphans_are_listed_and_discarded


class RealVirtualMachines(WithKubeVirt, RealHost):
    """KubeVirt in a real API server: definitions are the real ones, controllers are played, and take no time."""

    def __init__(self, cluster: Cluster) -> None:
        self.caller = Client.of_kubeconfig(cluster.plane.kubeconfig)
        self.full = set()
        self._seen: object = None
        self._is_served = False
        RealHost.__init__(self, cluster.plane)
        self.apply([dict(each) for each in kinds()])
        until(self._serves)
        # A controller of the cluster counts kinds that are new to it after minutes, and no machine is taken till then.
        self.plane.kubectl("delete", "resourcequota", host_template.NAME, "-n", NAMESPACE, "--ignore-not-found")
        self._is_served = True
        self.controllers = VirtControllers(self.caller, lambda: datetime.now(UTC), Seconds(0, 0, 0))
        self.clear()

    def _serves(self) -> bool:
        try:
            return all(self._items(resource) is not None for resource in RESOURCES)
        except Refused:
            return False

    def cloud(self) -> KubernetesHosts:
        return KubernetesHosts(self.access(self.transport()))

    def _items(self, resource: str) -> Sequence[dict[str, Any]]:
        group = _GROUPS.get(resource)
        root = f"/apis/{group}" if group else "/api/v1"
        items: list[dict[str, Any]] = self.caller.call("GET", f"{root}/namespaces/{NAMESPACE}/{resource}")["items"]
        return items

    def objects(self, resource: str) -> Mapping[str, Any]:
        marked = [
            item for item in self._items(resource) if "stockyard.dev/resource" in (item["metadata"].get("labels") or {})
        ]
        return {f"{NAMESPACE}/{item['metadata']['name']}": item for item in marked}

    def settle(self) -> None:
        now = self.clock.now()
        for _ in range(_MOST_STEPS if now != self._seen else 0):
            before = self._versions()
            self.controllers.work()
            if self._versions() == before:
                break
        self._seen = now

    def _versions(self) -> list[str]:
        return [item["metadata"]["resourceVersion"] for resource in RESOURCES for item in self._items(resource)]

    def answer(self, request: httpx.Request) -> httpx.Response:
        answer = super().answer(request)
        if request.method in ("PATCH", "DELETE"):
            self._seen = None
        return answer

    def clear(self) -> None:
        """Remove what is ours."""
        if not self._is_served:
            return
        for resource in RESOURCES:
            root = f"/apis/{_GROUPS[resource]}" if resource in _GROUPS else "/api/v1"
            for object_name in self.objects(resource):
                path = f"{root}/namespaces/{NAMESPACE}/{resource}/{object_name.partition('/')[2]}"
                with suppress(Refused):  # it went with its owner, or with its finalizers
                    self.caller.call("PATCH", path, {"metadata": {"finalizers": None}}, "application/merge-patch+json")
                    self.caller.call("DELETE", path)


class LookedAt(RealVirtualMachines):
    """The same, whose owner lets nodes and pods be listed."""

    features = (KUBEVIRT, CAPACITY)


@pytest.fixture
def host(web: Cluster) -> Iterator[RealVirtualMachines]:
    host = RealVirtualMachines(web)
    yield host
    host.close()


@pytest.fixture(params=["direct", "site"])
def world(request: pytest.FixtureRequest, host: RealVirtualMachines, monkeypatch: pytest.MonkeyPatch) -> suite.World:
    """The claim of the suite, on the host."""
    if request.param == "site":
        attributes = {"via": SITE, "namespaces": [NAMESPACE], "features": list(host.features)}
        host.account = replace(host.account, attributes=attributes, secrets=())

    def case(store: MemoryStore, _stack: ExitStack) -> Case:
        source = KubeVirtNodes(CONFIG, host.access(host.transport()), lambda _tenant: store)
        resources = {"cpu": 2, "memory": "8Gi"}
        types = [{"name": name, "resources": resources, "properties": IMAGE} for name in (FIRST, SECOND)]
        spec = {"kubeVirt": block(*types)}
        return Case(
            source, spec, "global", host.machines, host.full, cloud=host.cloud(), clock=host.clock, account=host.account
        )

    monkeypatch.setitem(SOURCES, REAL, case)
    return suite.World(REAL, ExitStack())


def test_the_template_of_an_account_grants_exactly_what_is_needed(host: RealVirtualMachines) -> None:
    verification = host.cloud().verify(host.account, TENANT)
    assert verification.works, verification.message


def test_the_real_schema_names_the_field_where_it_was_written(host: RealVirtualMachines) -> None:
    source = KubeVirtNodes(CONFIG, host.access(host.transport()), lambda _tenant: MemoryStore.__new__(MemoryStore))
    small = {"name": "small", "properties": IMAGE}

    def judged(*types: Mapping[str, Any], **fields: Any) -> list[str]:
        spec = {"kubeVirt": block(*types, **fields)}
        provider = NodeProvider(PROVIDER, "vms", "kubeVirt", spec, MOMENT, MOMENT)
        return [finding.pointer for finding in source.judge(provider, host.account, None, TENANT)]

    assert judged(small) == []
    base = block()["virtualMachineTemplate"]
    novelty = {"spec": {**base["spec"], "novelty": 1}}
    assert judged(small, virtualMachineTemplate=novelty) == ["/spec/virtualMachineTemplate/spec/novelty"]
    inner = "spec/template/spec"
    for change, pointer in (
        ({"volumes": [{"name": "a", "emptyDisk": {"capacity": "1Gi"}, "size": 1}]}, f"{inner}/volumes/0/size"),
        ({"domain": {"memory": {"guest": "lots"}}}, f"{inner}/domain/memory/guest"),
        ({"terminationGracePeriodSeconds": "5"}, f"{inner}/terminationGracePeriodSeconds"),
    ):
        entry = {**small, "mergeVirtualMachineTemplate": {"spec": {"template": {"spec": change}}}}
        assert judged(entry) == [f"/spec/nodeTypes/0/mergeVirtualMachineTemplate/{pointer}"]
    assert host.objects("virtualmachines") == {}
    missing = judged(small, clusterRef={"cluster": "3", "namespace": NAMESPACE})
    assert missing == []


def test_a_quota_of_the_real_api_server_is_read_as_one(host: RealVirtualMachines, world: suite.World) -> None:
    if world.account.attributes.get("via"):
        pytest.skip("the same answer by another way")
    hard = {"count/secrets": "0"}
    meta = {"name": "none", "namespace": NAMESPACE}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": hard}}
    host.apply([quota])
    path = f"/api/v1/namespaces/{NAMESPACE}/resourcequotas/none"
    until(lambda: (host.caller.call("GET", path).get("status") or {}).get("hard") == hard, 60)
    try:
        with pytest.raises(InsufficientCapacity, match="exceeded quota none"):
            world.launch()
        assert host.machines() == []
    finally:
        host.caller.call("DELETE", path)


def test_the_room_of_real_nodes_is_counted_where_the_right_is_there(web: Cluster) -> None:
    host = LookedAt(web)
    name, node_path, pods = "of-machines", "/api/v1/nodes/of-machines", f"/api/v1/namespaces/{NAMESPACE}/pods"
    source = KubeVirtNodes(CONFIG, host.access(host.transport()), lambda _tenant: MemoryStore.__new__(MemoryStore))
    spec = {"kubeVirt": block({"name": "small", "properties": IMAGE})}
    provider = NodeProvider(PROVIDER, "vms", "kubeVirt", spec, MOMENT, MOMENT)

    def total() -> Mapping[str, int] | None:
        return source.with_sheet(host.cloud().offers(host.account, TENANT, MOMENT)).totals(provider)

    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {SCHEDULABLE: "true"}}}
    allocatable = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}
    status = {"allocatable": allocatable, "capacity": allocatable, "conditions": [ready]}
    requests = {"requests": {"cpu": "1500m", "memory": "1Gi"}}
    inner = {"nodeName": name, "serviceAccountName": host_template.NAME}
    inner["containers"] = [{"name": "a", "image": "a", "resources": requests}]
    about = {"name": "of-others", "namespace": NAMESPACE}
    try:
        assert total() == {"small": 0}
        host.caller.call("POST", "/api/v1/nodes", node)
        merge = "application/merge-patch+json"
        host.caller.call("PATCH", f"{node_path}/status", {"status": status}, merge)
        host.caller.call("PATCH", node_path, {"spec": {"taints": None}}, merge)
        until(lambda: total() == {"small": 4})
        host.caller.call("POST", pods, {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": inner})
        assert total() == {"small": 2}
        host.plane.kubectl("delete", "clusterrole", f"{host_template.NAME}-{NAMESPACE}")
        until(lambda: bool(_blind(host)))
        assert "list nodes; list pods" in _blind(host)[0]
        assert total() is None
    finally:
        for path in (f"{pods}/of-others?gracePeriodSeconds=0", node_path):
            with suppress(Refused):
                host.caller.call("DELETE", path)
        host.close()


def _blind(host: RealVirtualMachines) -> list[str]:
    verification = host.cloud().verify(host.account, TENANT)
    assert verification.works
    return [text for text in verification.warnings if "whole host" in text]
