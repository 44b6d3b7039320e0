"""The sweep over all tenants: orphans, its limits, its scopes, and a table that was restored from an older copy."""

from __future__ import annotations

import copy
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace

import pytest

from local.testing.memory_store import MemoryRegistry
from stockyard.domain.records import CloudAccount, Cluster, NodeClaim, NodeProvider, Resource
from stockyard.errors import VendorUnavailable
from stockyard.metrics import IDENTITY_UNREACHABLE
from stockyard.operations.clusters.creation.create import create_cluster
from stockyard.operations.sweep import run, tenant_sweeps
from stockyard.operations.sweep.orphans import regions_of
from stockyard.ports import Create, Replace
from tests.harness.sweeping import Reaper
from tests.harness.worlds.memory import MemoryIdentity
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.nodes import Nodes


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


def test_orphan_is_removed_when_seen_twice_and_old(world, reaper):
    ready(world, "kept")
    world.provider.things["network-clu_lost"] = "network"
    first = reaper.run()
    assert first["orphans"] == ["network/us-east-1/network-clu_lost"]
    assert first["removed"] == []
    sweep_twice(world, reaper)
    assert "network-clu_lost" not in world.provider.things
    assert len(world.provider.things) == 5


def test_too_many_orphans_are_reported_and_kept(world, reaper):
    ready(world, "kept")
    for number in range(6):
        world.provider.things[f"network-clu_{number}"] = "network"
    report = sweep_twice(world, reaper)
    assert len(report["stopped"]) == 6
    assert len(world.provider.things) == 11


def test_sweep_removes_orphaned_clients_and_secrets(world, reaper):
    ready(world, "kept")
    world.secrets.put("acme/clu_lost/kubeconfig", "x")
    world.identity.create_client(client_id="lost", owner="clu_lost", tenant="acme", secret="s" * 24)
    sweep_twice(world, reaper)
    assert world.secrets.names("acme/clu_lost/") == []
    assert world.identity.find_client("lost") is None
    assert len(world.identity.clients) == 1


def test_secrets_of_a_claim_stay_and_no_other_claim_is_read_for_them(world, reaper, monkeypatch):
    ready(world, "kept")
    nodes = Nodes.of(world.registry, world.services, world.clock)
    own, other = (nodes.claim(name, resources={"cpu": "1"}) for name in ("own", "other"))
    world.secrets.put(f"acme/{own.id}/token", "x")
    # A name that is no id cannot be asked for: the table would refuse it, and with it the tenant's whole turn.
    for name in ("acme/ncl_lost/token", "acme//token", "acme/lost/token"):
        world.secrets.put(name, "x")
    asked_names = []
    store = type(world.registry.store("acme"))
    original = store.get_all

    def get_all(self, kind, names, **how):
        asked_names.extend(names)
        return original(self, kind, names, **how)

    monkeypatch.setattr(store, "get_all", get_all)
    sweep_twice(world, reaper)
    assert [name for name in world.secrets.names("acme/") if name.endswith("token")] == [f"acme/{own.id}/token"]
    assert {name for name in asked_names if not name.startswith("clu_")} == {own.id, "ncl_lost"}
    assert other.id not in asked_names


def test_a_turn_reads_claims_as_they_were_a_moment_ago_and_clusters_as_they_are(world, reaper, monkeypatch):
    """Claims are read for what is then written at their versions; half of what a large tenant's turn reads is saved."""
    store, reads = type(world.registry.store("acme")), {}
    original = store.list

    def list_records(self, kind, **how):
        if how.get("limit") == tenant_sweeps.PAGE:
            reads[kind] = how["consistent"]
        return original(self, kind, **how)

    monkeypatch.setattr(store, "list", list_records)
    ready(world, "kept")
    reaper.run()
    assert (reads[NodeClaim], reads[Cluster]) == (False, True)


@pytest.mark.parametrize("as_a_copy", [True, False])
def test_restored_older_table_deletes_nothing(world, reaper, as_a_copy):
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


def test_sweep_keeps_clients_of_other_installation_in_same_realm(world, reaper):
    other_store = MemoryRegistry().store("acme")
    other_store.commit(Create(world.services.store.get(CloudAccount, "1")))
    prod = with_ports(
        replace(world.services, store=other_store),
        installation="inst-2",
        identity=MemoryIdentity("inst-2", realm=world.identity),
    )
    for number in range(3):
        create_cluster(prod, world.new_cluster(f"p{number}"), "ann")
    world.identity.create_client(client_id="lost", owner="clu_lost", tenant="acme", secret="s" * 24)
    assert sweep_twice(world, reaper)["orphans"] == []
    assert len(world.identity.clients) == 3
    assert world.identity.find_client("lost") is None


def test_sweep_keeps_clients_of_thousand_clusters(world, reaper):
    cluster = world.create("first")
    for number in range(1010):
        tenant, name = f"t{number:04}", f"clu_{number:026}"
        last = replace(cluster, id=name, client_id=f"c{number}", operation_id=None, version=1)
        world.registry.store(tenant).commit(Create(last))
        world.identity.create_client(client_id=last.client_id, owner=name, tenant=tenant, secret="s" * 24)
    assert reaper.run()["orphans"] == []
    assert len(world.identity.clients) == 1011


def test_first_cluster_created_during_sweep_is_no_orphan(world, reaper):
    look = world.identity.owned_clients

    def owned_clients():
        account = world.services.store.get(CloudAccount, "1")
        globex = replace(world.services, store=world.registry.store("globex"))
        globex.store.commit(Create(account))
        create_cluster(globex, world.new_cluster(), "ann")
        return look()

    world.identity.owned_clients = owned_clients
    assert reaper.run()["orphans"] == []


def account(number, region):
    attributes = {"role_arn": "arn:aws:iam::222222222222:role/t", "region": region}
    return CloudAccount(str(number), "aws", "a", "", attributes, "x", "verified", "", "", "")


def test_sweep_reads_regions_of_account_only(world):
    cluster = world.create()
    world.services.store.commit(
        Create(account(2, "eu-west-1")),
        Create(replace(cluster, id="clu_2", cloud_account_id=2, settings={"region_name": "ap-south-1"}, version=1)),
        Create(Resource("clu_3/n/v/k", "clu_3", "n", "v", "k", "t", "gone", "us-west-2", 1, cluster.created_at)),
    )
    first, second = (world.services.store.get(CloudAccount, str(number)) for number in (1, 2))
    assert regions_of(world.services, first) == ["us-east-1", "us-west-2"]
    assert regions_of(world.services, second) == ["ap-south-1", "eu-west-1"]


def test_unreachable_region_is_reported_and_others_are_swept(world, reaper):
    world.provider.dark = {"me-south-1"}
    cluster = world.create()
    settings = {"region_name": "me-south-1"}
    world.services.store.commit(Create(replace(cluster, id="clu_2", settings=settings, operation_id=None, version=1)))
    world.provider.things["network-clu_lost"] = "network"
    assert reaper.run()["failures"] == ["acme cloud account 1 me-south-1: PermissionDenied"]
    sweep_twice(world, reaper)
    assert "network-clu_lost" not in world.provider.things


def test_sweep_continues_where_last_one_ran_out_of_time(world, reaper):
    tenants = ["acme", "globex", "initech", "umbrella"]
    for tenant in tenants[1:]:
        world.registry.store(tenant).commit(Create(account(1, "us-east-1")))

    class OutOfTime(BaseException):
        pass

    turns, handed = [], []

    def hand_out(tenant, scope):
        if len(handed) == 2:
            raise OutOfTime
        handed.append(tenant)

    for _ in range(3):
        with pytest.raises(OutOfTime):
            run.Reaper(world.registry, world.clock, reaper.services_of, hand_out).run()
        turns += handed
        handed.clear()
    # The one in whose turn the time ran out does not get the next sweep's time too.
    assert turns == ["acme", "globex", "umbrella", "acme", "initech", "umbrella"]


def test_unverified_account_with_clusters_is_swept(world, reaper):
    """A change of its attributes makes an account unverified, but our resources stay in it."""
    cluster = world.create()
    world.drive(cluster, "provision_cluster")
    current = world.services.store.get(CloudAccount, "1")
    changed = replace(current, verification="unverified", version=current.version + 1)
    world.services.store.commit(Replace(changed))
    world.provider.things["network-clu_lost"] = "network"
    sweep_twice(world, reaper)
    assert "network-clu_lost" not in world.provider.things
    world.services.store.commit(Create(replace(account(2, "eu-west-1"), verification="unverified")))
    world.provider.sweeps.clear()
    world.clock.advance(3600)
    reaper.run()
    assert {number for _, number, _ in world.provider.sweeps} == {"1"}


def test_account_named_by_node_provider_only_is_swept(world, reaper):
    world.services.store.commit(
        Create(replace(account(2, "eu-west-1"), verification="unverified")),
        Create(NodeProvider("npr_1", "yard", "ec2", {"ec2": {"cloudAccount": 2}}, "", "")),
    )
    reaper.run()
    assert {number for _, number, _ in world.provider.sweeps} == {"1", "2"}
    assert ("acme", "account/2") in reaper.scopes


def test_silent_scope_delays_no_other(world, reaper):
    """100 scopes of which 10 do not answer: the run asks none of them, and the other 90 are swept meanwhile."""
    for number in range(99):
        world.registry.store(f"t{number:02}").commit(Create(account(1, "us-east-1")))
    silent = {f"t{number:02}" for number in range(0, 99, 10)}
    answers, look = threading.Event(), world.provider.tagged

    def tagged(account, installation, tenant, *more):
        if tenant in silent:
            assert answers.wait(60)
        return look(account, installation, tenant, *more)

    world.provider.tagged = tagged
    scopes = []
    one_run = run.Reaper(world.registry, world.clock, reaper.services_of, lambda *scope: scopes.append(scope))
    one_run.run()
    assert (len(scopes), world.provider.sweeps) == (100, [])
    with ThreadPoolExecutor(100) as pool:
        sweeps = {tenant: pool.submit(one_run.sweep_scope, tenant, scope) for tenant, scope in scopes}
        try:
            wait([sweep for tenant, sweep in sweeps.items() if tenant not in silent], timeout=60)
            assert {tenant for tenant, sweep in sweeps.items() if not sweep.done()} == silent
        finally:
            answers.set()
    assert len(world.provider.sweeps) == 100
    assert {tuple(sweep.result()["failures"]) for sweep in sweeps.values()} == {()}


def test_scope_handed_out_before_restore_is_only_reported(world, reaper):
    world.provider.things["network-clu_lost"] = "network"
    sweep = run.Reaper(world.registry, world.clock, reaper.services_of, lambda tenant, scope: None)
    sweep.run()
    assert sweep.sweep_scope("acme", "account/1")["distrusted"] is False
    world.clock.advance(3500)
    sweep.run()
    world.clock.advance(300)
    world.registry.table.id = "table-2"
    report = sweep.sweep_scope("acme", "account/1")
    assert (report["distrusted"], report["removed"]) == (True, [])
    assert "network-clu_lost" in world.provider.things


def test_a_realm_that_does_not_answer_is_measured(world, reaper):
    ready(world, "kept")
    reaper.run()
    telemetry = world.services.telemetry
    assert IDENTITY_UNREACHABLE.name not in telemetry.values
    world.identity.faults.before("owned_clients", VendorUnavailable("no answer"))
    assert reaper.run()["failures"] == ["realm: VendorUnavailable"]
    assert telemetry.values[IDENTITY_UNREACHABLE.name] == [1]
