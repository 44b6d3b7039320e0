"""Kubernetes hosts on a real API server: the conformance suite of node sources, verification, rights taken away.

The same on the simulated API is in ``tests/contracts``, ``tests/unit/providers/clouds/kubernetes`` and
``tests/workflows``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest

from local.testing.memory_store import MemoryStore
from stockyard.domain.values.ids import account_secret
from stockyard.providers.clouds.kubernetes.features import BASE, rights_of
from stockyard.providers.nodes.config_maps.provider import ConfigMapNodes
from tests.contracts import test_node_source as suite
from tests.harness.worlds.kubernetes_host import NAMESPACE, NUMBER, SITE, TENANT
from tests.harness.worlds.node_source_cases import FIRST, SECOND, SOURCES, Case
from tests.kubernetes.conftest import Cluster
from tests.kubernetes.hosts import RealHost
from tests.workflows.test_config_map_crash_matrix import LifeWithoutRight

REAL = "configMap on a real API server"
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


@pytest.fixture
def host(web: Cluster) -> Iterator[RealHost]:
    host = RealHost(web.plane)
    yield host
    host.close()


@pytest.fixture(params=["direct", "site"])
def world(request: pytest.FixtureRequest, host: RealHost, monkeypatch: pytest.MonkeyPatch) -> suite.World:
    """The claim of the suite, on the host."""
    if request.param == "site":
        host.account = replace(host.account, attributes={"via": SITE, "namespaces": [NAMESPACE]}, secrets=())

    def case(store: MemoryStore, _stack: ExitStack) -> Case:
        full: set[str] = set()
        source = ConfigMapNodes(host.access(), lambda _tenant: store, offered=True)
        source.refuses = lambda _provider, name, _zone: name in full
        types = [{"name": name, "resources": {"cpu": 2, "memory": "8Gi"}} for name in (FIRST, SECOND)]
        block = {"clusterRef": {"cluster": NUMBER, "namespace": NAMESPACE}, "launchSeconds": 5, "nodeTypes": types}

        def machines() -> list[str]:
            return [object_name.partition("/")[2] for object_name in host.objects("configmaps")]

        spec = {"configMap": block}
        return Case(source, spec, "global", machines, full, cloud=host.cloud(), clock=host.clock, account=host.account)

    monkeypatch.setitem(SOURCES, REAL, case)
    return suite.World(REAL, ExitStack())


def test_the_template_grants_exactly_what_is_needed(host: RealHost) -> None:
    verification = host.cloud().verify(host.account, TENANT)
    assert verification.works, verification.message
    assert "end at" in verification.warnings[0], "the token is of an hour"
    elsewhere = replace(host.account, attributes={**host.account.attributes, "namespaces": ["web"]})
    message = host.cloud().verify(elsewhere, TENANT).message
    assert all(f"{right} in namespace web" in message for right in rights_of([BASE]))


def test_a_namespace_that_is_not_there_is_named(host: RealHost) -> None:
    attributes = {**host.account.attributes, "namespaces": ["nowhere"]}
    account = replace(host.account, attributes=attributes, secrets=("client_key",))
    assert "configmaps in namespace nowhere" in host.cloud().verify(account, TENANT).message


def test_a_token_that_nobody_knows(host: RealHost) -> None:
    host.secrets.put(account_secret(TENANT, NUMBER, "token"), "a-token-of-nobody")
    verification = host.cloud().verify(host.account, TENANT)
    assert not verification.works
    assert "does not accept the token" in verification.message


@pytest.mark.parametrize("right", list(rights_of([BASE])), ids=str)
def test_with_each_right_taken_away_nothing_ends_halfway(
    host: RealHost, right: object, record_property: Callable[[str, object], None]
) -> None:
    verb, resource = str(right).split()
    life = LifeWithoutRight(host=host, without=((verb, resource),))
    verification = host.cloud().verify(host.account, TENANT)
    assert f"may not: {right} in namespace {NAMESPACE}." in verification.message
    assert life.run() in ("Available", "Failed")
    if life.reached_phase == "Failed":
        assert "403 Forbidden" in life.error
    waits = bool(life.cloud.leftovers())
    assert not waits or life._claim() is not None
    host.grant(verb, resource)
    life._delete()
    life._clear()
    assert life.cloud.leftovers() == []
    assert life.nodes.nothing_left()
    record_property("figure:right_taken_away", f"{right}: {life.reached_phase}{', waits' if waits else ''}")
