"""Many machines of hosts on a real API server with the real definitions: a race for hosts of bare metal, virtual
machines that are made and deleted, and generated templates by a dry run. Few outside the soak."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx

from stockyard.providers.clouds.kubernetes import bare_metal
from stockyard.providers.nodes.kubevirt.provider import KubeVirtNodes
from tests.harness.kubevirt.host import CONFIG, RESOURCES
from tests.harness.kubevirt.templates import COUNT, generated, generated_machine, settings
from tests.harness.worlds.kubernetes_host import TENANT
from tests.kubernetes.conftest import Cluster
from tests.kubernetes.hosts import RealHost
from tests.kubernetes.test_bare_metal import RealYard
from tests.kubernetes.test_virtual_machines import RealVirtualMachines
from tests.unit.providers.nodes.kubevirt.yard import Yard
from tests.workflows.test_bare_metal_races import CLAIMS, HOSTS, KIND, WORKERS, Crowd

FEW_CLAIMS, FEW_HOSTS, FEW_MACHINES, FEW_TEMPLATES = 6, 4, 3, 20
MACHINES = 50


class OpenCrowd(Crowd):
    """Claims whose requests reach the API server as they come; the operator alone works one step at a time."""

    def _answer(self, request: httpx.Request) -> httpx.Response:
        with self.lock:
            self.yard.operate()
        return RealHost.answer(self.yard, request)


class RealMachines(Yard):
    """Claims whose host is a real API server."""

    def new_source(self) -> KubeVirtNodes:
        """See ``Yard``."""
        return KubeVirtNodes(CONFIG, self.host.access(self.host.transport()), lambda _tenant: self.store)


def test_no_host_has_two_consumers_however_many_want_it_at_once(
    web: Cluster, soaking: bool, record_property: Callable[[str, object], None]
) -> None:
    count, host_count = (CLAIMS, HOSTS) if soaking else (FEW_CLAIMS, FEW_HOSTS)
    yard = RealYard(web, {f"m{each:02d}": {"kind": KIND} for each in range(host_count)})
    try:
        crowd = OpenCrowd(yard)
        claims = [crowd.claim(number) for number in range(count)]
        with ThreadPoolExecutor(WORKERS) as pool:
            ends = list(pool.map(crowd.launch, claims))
        hosts = yard.hosts()
        pairs = {claim.id: end for claim, end in zip(claims, ends, strict=True) if end in hosts}
        assert len(set(pairs.values())) == len(pairs) == host_count
        assert {bare_metal.holder(hosts[name]): name for name in hosts} == pairs
        assert all(f"of {host_count} hosts for {KIND}" in end for end in ends if end not in hosts)
        record_property("figure:bare_metal_race_on_a_real_api", {"claims": count, "hosts": len(pairs)})
    finally:
        yard.close()


def test_machines_that_are_made_and_deleted_leave_nothing(
    web: Cluster, soaking: bool, record_property: Callable[[str, object], None]
) -> None:
    host = RealVirtualMachines(web)
    try:
        yard, count = RealMachines(host=host), MACHINES if soaking else FEW_MACHINES
        assert len({yard.launch(number).facts["machine_id"] for number in range(count)}) == count
        before = {resource: len(host.objects(resource)) for resource in RESOURCES}
        assert before == dict.fromkeys(RESOURCES, count)
        for number in range(count):
            yard.terminate(number)
        after = {resource: len(host.objects(resource)) for resource in RESOURCES}
        assert after == dict.fromkeys(RESOURCES, 0)
        record_property(
            "figure:kubevirt_claims_on_a_real_api", {"claims": count, "objects": sum(before.values()), "left": 0}
        )
    finally:
        host.close()


def test_generated_templates_are_taken_by_the_real_api_server(
    web: Cluster, soaking: bool, seed: int, record_property: Callable[[str, object], None]
) -> None:
    host = RealVirtualMachines(web)
    try:
        api, chance = host.access(host.transport()).client(TENANT, host.account), random.Random(seed)
        count = COUNT if soaking else FEW_TEMPLATES
        for number in range(count):
            machine = generated_machine(chance, generated(chance), generated(chance), settings(chance))
            machine = api.apply(machine, dry_run=True)
            disks = machine["spec"]["template"]["spec"]["domain"]["devices"]["disks"]
            assert [disk["name"] for disk in disks][-2:] == ["rootdisk", "cloudinitdisk"], number
        assert host.objects("virtualmachines") == {}
        record_property("figure:kubevirt_templates_on_a_real_api", count)
    finally:
        host.close()
