"""Machines that are ConfigMaps of a cluster that Stockyard made: orphans, which their tenant alone removes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from local.testing.memory_store import MemoryRegistry
from stockyard.domain.records import NodeProvider
from stockyard.ports import Create, Tagged
from stockyard.providers.clouds.kubernetes.marks import marks
from stockyard.providers.nodes.config_maps.provider import ConfigMapNodes
from tests.harness.worlds.kubernetes_host import NAMESPACE, NUMBER, TENANT, KubernetesHost

INSTALLATION, CLAIM = "inst-1", "ncl_01"


@pytest.fixture
def host() -> KubernetesHost:
    return KubernetesHost()


@pytest.fixture
def source(host: KubernetesHost) -> ConfigMapNodes:
    registry = MemoryRegistry()
    registry.store(TENANT).commit(Create(host.cluster()))
    return ConfigMapNodes(host.access(), registry.store, offered=True)


def provider(reference: str = "own-host") -> NodeProvider:
    block = {"clusterRef": {"cluster": reference, "namespace": NAMESPACE}}
    return NodeProvider("npr_1", "toys", "configMap", {"configMap": block}, "t", "t")


def create(host: KubernetesHost, name: str, tenant: str = TENANT, **labels: str) -> None:
    metadata = {"name": name, "namespace": NAMESPACE, "labels": {**marks(INSTALLATION, tenant, CLAIM, 1), **labels}}
    api = host.access().host_client(TENANT, host.cluster())
    api.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {}})


def names(things: list[Tagged]) -> list[str]:
    return [thing.vendor_id for thing in things]


def test_orphans_of_an_own_cluster_are_seen_and_removed(host: KubernetesHost, source: ConfigMapNodes) -> None:
    create(host, "orphan")
    create(host, "of-another", "globex")
    things = list(source.tagged(provider(), INSTALLATION, TENANT))
    assert names(things) == ["orphan"]
    assert list(source.tagged(provider(NUMBER), INSTALLATION, TENANT)) == [], "an account's sweep sees its own"
    assert source.discard(provider(), things[0], TENANT)
    assert sorted(host.objects("configmaps")) == [f"{NAMESPACE}/of-another"]
    assert source.discard(provider(), things[0], TENANT), "what is gone is no error"


def test_nothing_of_another_tenant_record_or_kind_is_removed(host: KubernetesHost, source: ConfigMapNodes) -> None:
    create(host, "of-another", "globex")
    thing = Tagged("ConfigMap", "of-another", NAMESPACE, TENANT, CLAIM, "1")
    for wrong in (thing, replace(thing, tenant="globex"), replace(thing, kind="Pod")):
        assert not source.discard(provider(), wrong, TENANT)
    create(host, "mine")
    assert not source.discard(provider(), replace(thing, vendor_id="mine", resource_id="ncl_02"), TENANT)
    assert len(host.objects("configmaps")) == 2
