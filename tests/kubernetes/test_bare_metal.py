"""Hosts of bare metal on a real API server with the real definitions of Metal3: the conformance suite of node sources,
direct and through a site, and the rows that the real operator was recorded by.

The same on the simulated API is in ``tests/contracts`` and ``tests/workflows``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import httpx
import pytest

from local.bare_metal import BareMetalOperator
from local.kubernetes.definitions import METAL3 as DEFINED
from local.kubernetes.definitions import definitions
from local.kubernetes.real.client import Client, Refused
from local.testing.memory_store import MemoryStore
from stockyard.providers.clouds.kubernetes.features import METAL3
from stockyard.providers.kubernetes.client import KubernetesApi
from stockyard.providers.nodes.metal3.provider import Metal3Nodes
from tests.contracts import test_bare_metal_operator as rows
from tests.contracts import test_node_source as suite
from tests.harness.bare_metal.yard import CONFIG, SIZE, FullYard, Lent, block, secret_of
from tests.harness.worlds.kubernetes_host import NAMESPACE, SITE, TENANT
from tests.harness.worlds.node_source_cases import FIRST, SECOND, SOURCES, Case
from tests.kubernetes.conftest import Cluster
from tests.kubernetes.hosts import RealHost
from tests.kubernetes.rigs import until

REAL = "metal3 on a real API server"
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

test_row_registered = rows.test_a_host_that_is_registered_becomes_available
test_row_image = rows.test_a_host_gets_its_image_when_it_is_taken_and_switched_on
test_row_wiped = rows.test_a_host_is_wiped_when_its_image_is_left_out
test_row_managers = rows.test_a_host_is_free_when_its_consumer_is_left_out_and_has_these_managers
test_row_without_power = rows.test_a_host_cannot_be_without_a_wish_for_its_power
test_row_cancelled = rows.test_provisioning_is_cancelled_in_its_middle
test_row_power = rows.test_power_follows_the_wish_and_the_state_stays
test_row_another_image = rows.test_another_image_wipes_a_host_in_use_without_a_question
test_row_credentials = rows.test_a_host_without_its_credentials_says_so_at_once
test_row_two = rows.test_of_two_with_one_version_one_has_the_host
test_row_six = rows.test_of_six_at_once_one_has_the_host
test_row_force = rows.test_without_a_version_force_takes_a_host_from_its_consumer
test_row_definition = rows.test_the_definition_of_hosts_is_enforced


class RealYard(Lent, RealHost):
    """Hosts of bare metal that the owner of a real API server lends."""

    features = (METAL3,)

    def __init__(self, cluster: Cluster, machines: Mapping[str, Mapping[str, str]]) -> None:
        self.machines, self.caller = dict(machines), Client.of_kubeconfig(cluster.plane.kubeconfig)
        RealHost.__init__(self, cluster.plane)
        self.apply([dict(each) for each in definitions(DEFINED)])
        until(self._serves)
        self.operator = BareMetalOperator(self.caller, self.clock.now, hardware=lambda _: SIZE)
        self._remove_hosts()
        self.put(secret_of("of-the-owner"))
        for name, labels in self.machines.items():
            self.register(name, labels)
        self.settle(1)

    def _serves(self) -> bool:
        try:
            return isinstance(self.hosts(), dict)
        except Refused:
            return False

    @property
    def api_client(self) -> KubernetesApi:
        """The product's client of the account."""
        return self.access(self.transport()).client(TENANT, self.account)

    def answer(self, request: httpx.Request) -> httpx.Response:
        """See ``KubernetesHost.answer``."""
        self.operate()
        return super().answer(request)

    def clear(self) -> None:
        """Remove what is ours; hosts go by themselves."""
        for object_name in self.objects("secrets"):
            self.plane.kubectl(
                "delete", "secrets", object_name.partition("/")[2], "-n", NAMESPACE, "--ignore-not-found"
            )

    def close(self) -> None:
        """Leave nothing to the next test."""
        self._remove_hosts()
        super().close()

    def _remove_hosts(self) -> None:
        for name in self.hosts():
            path = f"/apis/metal3.io/v1alpha1/namespaces/{NAMESPACE}/baremetalhosts/{name}"
            self.caller.call("PATCH", path, {"metadata": {"finalizers": None}}, "application/merge-patch+json")
            self.caller.call("DELETE", path)


@pytest.fixture
def yard(web: Cluster) -> Iterator[Any]:
    yard = RealYard(web, {name: {"kind": "metal"} for name in ("m1", "m2", "m3")})
    yield yard
    yard.close()


@pytest.fixture(params=["direct", "site"])
def world(request: pytest.FixtureRequest, web: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[suite.World]:
    """The claim of the suite, on the host."""
    yard = RealYard(web, {f"{name}-{number}": {"kind": name} for name in (FIRST, SECOND) for number in (1, 2)})
    if request.param == "site":
        attributes = {"via": SITE, "namespaces": [NAMESPACE], "features": list(yard.features)}
        yard.account = replace(yard.account, attributes=attributes, secrets=())

    def case(store: MemoryStore, _stack: ExitStack) -> Case:
        full = FullYard(yard)
        source = Metal3Nodes(CONFIG, yard.access(yard.transport()), lambda _tenant: store)
        spec, machines = {"metal3": block(FIRST, SECOND)}, yard.hosts_of_claims
        return Case(source, spec, "global", machines, full, cloud=yard.cloud(), clock=yard.clock, account=yard.account)

    monkeypatch.setitem(SOURCES, REAL, case)
    yield suite.World(REAL, ExitStack())
    yard.close()


def test_every_host_is_as_it_was_lent_after_a_node_has_gone(world: suite.World) -> None:
    world.prepare()
    world.launch()
    world.terminate()
    yard = world.case.machines.__self__  # type: ignore[attr-defined]
    yard.settle()
    assert yard.as_lent() == []
