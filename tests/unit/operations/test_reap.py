"""The sweep over all tenants: orphans, its limits, and an older table."""

from __future__ import annotations

import copy

import pytest

from stockyard.domain.records import Cluster
from stockyard.operations.reap import Reaper


@pytest.fixture
def reaper(world):
    def services_of(tenant):
        store = world.registry.platform() if tenant == "_platform" else world.registry.store(tenant)
        return type(world.services)(
            **{n: getattr(world.services, n) for n in world.services.__slots__ if n != "store"}, store=store
        )

    return Reaper(world.registry, world.clock, services_of)


def sweep_twice(world, reaper, **how):
    reaper.run(**how)
    later = None
    for _ in range(14):
        world.clock.advance(300)
        later = reaper.run()
    return later


def ready(world, name):
    cluster = world.create(name)
    assert world.drive(cluster, "provision_cluster") == "ready"
    return cluster


def test_what_no_record_owns_is_removed_when_seen_twice_and_old(world, reaper):
    ready(world, "kept")
    world.provider.things["network-clu_lost"] = "network"
    first = reaper.run()
    assert first["orphans"] == ["network/us-east-1/network-clu_lost"]
    assert first["removed"] == []
    sweep_twice(world, reaper)
    assert "network-clu_lost" not in world.provider.things
    assert len(world.provider.things) == 5


def test_suspiciously_many_orphans_are_left_alone_and_reported(world, reaper):
    ready(world, "kept")
    for number in range(6):
        world.provider.things[f"network-clu_{number}"] = "network"
    report = sweep_twice(world, reaper)
    assert len(report["stopped"]) == 6
    assert len(world.provider.things) == 11


def test_the_realm_and_the_secrets_are_swept_too(world, reaper):
    ready(world, "kept")
    world.secrets.put("acme/clu_lost/kubeconfig", "x")
    world.identity.create_client(client_id="lost", owner="clu_lost", tenant="acme", secret="s" * 24)
    sweep_twice(world, reaper)
    assert world.secrets.names("acme/clu_lost/") == []
    assert world.identity.find_client("lost") is None
    assert len(world.identity.clients) == 1


@pytest.mark.parametrize("as_a_copy", [True, False])
def test_an_older_table_is_restored_with_0_deletions(world, reaper, as_a_copy):
    old = ready(world, "old")
    reaper.run()
    saved = copy.deepcopy(world.registry.table.partitions)
    world.clock.advance(300)
    young = ready(world, "young")
    reaper.run()
    things, clients = dict(world.provider.things), dict(world.identity.clients)
    world.registry.table.partitions = saved
    if as_a_copy:
        world.registry.table.id = "table-2"
    else:
        world.clock.advance(7200)
    report = sweep_twice(world, reaper)
    assert report["distrusted"]
    assert report["orphans"]
    assert world.provider.things == things
    assert world.identity.clients == clients
    assert world.services.store.get(Cluster, young.id) is None
    assert world.services.store.get(Cluster, old.id) is not None
    assert reaper.run(reconciled=True)["distrusted"] is False
    sweep_twice(world, reaper)
    assert len(world.provider.things) == 5
    assert len(world.identity.clients) == 1
