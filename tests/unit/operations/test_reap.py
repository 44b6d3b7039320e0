"""The sweep over all tenants: orphans, its limits, and an older table."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest

from local.memory import MemoryIdentity
from local.memory_store import MemoryRegistry
from stockyard.domain.records import CloudAccount, Cluster, Resource
from stockyard.operations.create_cluster import create_cluster
from stockyard.operations.reap import Reaper
from stockyard.operations.sweep_orphans import regions_of
from stockyard.ports import Create, Replace


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


def test_a_stage_leaves_the_clients_of_another_stage_in_the_same_realm(world, reaper):
    theirs = MemoryRegistry().store("acme")
    theirs.commit(Create(world.services.store.get(CloudAccount, "1")))
    prod = replace(
        world.services, store=theirs, installation="inst-2", identity=MemoryIdentity("inst-2", realm=world.identity)
    )
    for number in range(3):
        create_cluster(prod, world.wanted(f"p{number}"), "ann")
    world.identity.create_client(client_id="lost", owner="clu_lost", tenant="acme", secret="s" * 24)
    assert sweep_twice(world, reaper)["orphans"] == []
    assert len(world.identity.clients) == 3
    assert world.identity.find_client("lost") is None


def test_more_than_a_thousand_clusters_are_all_alive(world, reaper):
    made = world.create("first")
    for number in range(1010):
        tenant, name = f"t{number:04}", f"clu_{number:026}"
        last = replace(made, id=name, client_id=f"c{number}", operation_id=None, version=1)
        world.registry.store(tenant).commit(Create(last))
        world.identity.create_client(client_id=last.client_id, owner=name, tenant=tenant, secret="s" * 24)
    assert reaper.run()["orphans"] == []
    assert len(world.identity.clients) == 1011


def test_a_tenant_whose_first_cluster_is_made_during_the_sweep_is_no_orphan(world, reaper):
    look = world.identity.owned_clients

    def owned_clients():
        account = world.services.store.get(CloudAccount, "1")
        globex = replace(world.services, store=world.registry.store("globex"))
        globex.store.commit(Create(account))
        create_cluster(globex, world.wanted(), "ann")
        return look()

    world.identity.owned_clients = owned_clients
    assert reaper.run()["orphans"] == []


def account(number, region):
    attributes = {"role_arn": "arn:aws:iam::222222222222:role/t", "region": region}
    return CloudAccount(str(number), "aws", "a", "", attributes, "x", "verified", "", "", "")


def test_an_account_is_looked_at_in_its_own_regions_only(world):
    cluster = world.create()
    world.services.store.commit(
        Create(account(2, "eu-west-1")),
        Create(replace(cluster, id="clu_2", cloud_account_id=2, settings={"region_name": "ap-south-1"}, version=1)),
        Create(Resource("clu_3/n/v/k", "clu_3", "n", "v", "k", "t", "gone", "us-west-2", 1, cluster.created_at)),
    )
    first, second = (world.services.store.get(CloudAccount, str(number)) for number in (1, 2))
    assert regions_of(world.services, first) == ["us-east-1", "us-west-2"]
    assert regions_of(world.services, second) == ["ap-south-1", "eu-west-1"]


def test_a_region_that_cannot_be_asked_is_reported_and_the_others_are_swept(world, reaper):
    world.provider.dark = {"me-south-1"}
    cluster = world.create()
    settings = {"region_name": "me-south-1"}
    world.services.store.commit(Create(replace(cluster, id="clu_2", settings=settings, operation_id=None, version=1)))
    world.provider.things["network-clu_lost"] = "network"
    assert reaper.run()["failures"] == ["acme cloud account 1 me-south-1: PermissionDenied"]
    sweep_twice(world, reaper)
    assert "network-clu_lost" not in world.provider.things


def test_each_sweep_goes_on_where_the_last_one_ran_out_of_time(world, reaper):
    tenants = ["acme", "globex", "initech", "umbrella"]
    for tenant in tenants[1:]:
        world.registry.store(tenant).commit(Create(account(1, "us-east-1")))
    look = world.provider.tagged

    class OutOfTime(BaseException):
        pass

    def tagged(*given):
        if len(world.provider.asked) == 2:
            raise OutOfTime
        return look(*given)

    world.provider.tagged = tagged
    turns = []
    for _ in range(3):
        with pytest.raises(OutOfTime):
            reaper.run()
        turns += [tenant for tenant, _, _ in world.provider.asked]
        world.provider.asked.clear()
    # The one in whose turn the time ran out does not get the next sweep's time too.
    assert turns == ["acme", "globex", "umbrella", "acme", "initech", "umbrella"]


def test_an_account_that_was_not_verified_is_swept_when_it_has_clusters(world, reaper):
    """A change of its attributes makes a verified account unverified: what is ours stays in it."""
    cluster = world.create()
    world.drive(cluster, "provision_cluster")
    current = world.services.store.get(CloudAccount, "1")
    changed = replace(current, verification="unverified", version=current.version + 1)
    world.services.store.commit(Replace(changed))
    world.provider.things["network-clu_lost"] = "network"
    sweep_twice(world, reaper)
    assert "network-clu_lost" not in world.provider.things
    world.services.store.commit(Create(replace(account(2, "eu-west-1"), verification="unverified")))
    world.provider.asked.clear()
    reaper.run()
    assert {number for _, number, _ in world.provider.asked} == {"1"}
