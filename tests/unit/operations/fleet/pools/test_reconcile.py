"""Pools are kept at the nodes that they are to have: by passes that may overlap, be late, or die."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from stockyard.domain.pools.records import ClusterClaim, NewPool, Pool
from stockyard.domain.records import NodeClaim, Quota
from stockyard.errors import Conflict
from stockyard.operations.clusters import nodes as cluster_nodes
from stockyard.operations.fleet.pools import pools, reconcile
from stockyard.operations.listing import every
from stockyard.operations.node_claims.delete import delete_claim
from stockyard.operations.services import Services
from stockyard.ports import Put, Replace
from tests.unit.operations.fleet.pools.conftest import USER, Agent, Yard


def test_a_static_pool_gets_its_nodes_and_says_so(yard: Yard) -> None:
    yard.pool(quantity=3, labels={"team": "a"}, taints=[{"key": "k", "effect": "NoSchedule"}])
    yard.settle()
    claims = yard.claims()
    assert [claim.phase for claim in claims] == ["Available"] * 3
    assert {claim.type_ref for claim in claims} == {"sim.small"}
    for claim in claims:
        assert re.fullmatch("workers-[a-z2-7]{5}", claim.name)
        assert claim.labels == {"team": "a", "stockyard.dev/pool": "workers"}
        assert claim.taints == ({"key": "k", "effect": "NoSchedule"},)
        assert (claim.pool, claim.cluster_id, claim.created_by) == ("workers", yard.cluster.id, USER)
    assert yard.condition(yard.now()) == ("True", "Satisfied", "3 of 3 nodes are available.")
    due_at = yard.now().due_at
    assert due_at is not None
    assert 0 < -yard.nodes.services.seconds_since(due_at) <= 300, "an event may be lost: one more look, then few"
    assert yard.condition(yard.current(), "PoolsReady")[:2] == ("True", "Satisfied")
    assert yard.reasons(yard.now().id) == ["Created", "Scaling", "Satisfied"]


def test_a_pass_that_finds_nothing_to_do_writes_nothing(yard: Yard) -> None:
    yard.pool(quantity=1)
    yard.settle()
    before = (yard.now().version, yard.current().version)
    for _ in range(3):
        yard.look()
    assert (yard.now().version, yard.current().version) == before


def test_a_pass_that_writes_of_its_pool_alone_reads_the_claims_once(
    yard: Yard, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    yard.dynamic_pool("spare", floor=1)
    yard.settle()
    agent.post()
    (claim,) = yard.claims("spare")
    yard.nodes.services.store.commit(Replace(replace(claim, phase="Pending", version=claim.version + 1)))
    reads: list[str] = []
    original = pools.claims_of

    def claims_of(services: Services, cluster_id: str) -> Sequence[NodeClaim]:
        reads.append(cluster_id)
        return original(services, cluster_id)

    monkeypatch.setattr(reconcile, "claims_of", claims_of)
    before = yard.now("spare").version
    yard.look()
    assert yard.now("spare").version > before
    assert len(reads) == 1
    # One that has made claims reads them again before it makes nodes for pods.
    delete_claim(yard.nodes.services, claim.id, USER)
    reads.clear()
    yard.look()
    assert len(yard.claims("spare")) == 2
    assert len(reads) == 2


def test_a_waiting_pool_is_not_written_with_each_pass(yard: Yard) -> None:
    yard.pool(quantity=1, requirements=[{"key": "vcluster.com/node-type", "values": ["sim.none"]}])
    yard.look()
    yard.look()
    before = yard.now().version
    yard.look()
    assert yard.now().version == before
    assert yard.now().due_at is not None


def test_a_dynamic_pool_is_kept_at_its_floor(yard: Yard) -> None:
    yard.dynamic_pool("spare", floor=2)
    yard.settle()
    assert [claim.phase for claim in yard.claims("spare")] == ["Available"] * 2
    assert (yard.now("spare").kind, yard.now("spare").expire_after) == ("dynamic", "720h")


def test_no_claim_is_made_before_the_cluster_is_ready(yard: Yard) -> None:
    yard.cluster = yard.put(status="preparing")
    yard.pool()
    yard.look()
    assert not yard.claims()
    assert yard.condition(yard.now())[:2] == ("False", "ClusterNotReady")
    yard.put(status="ready")
    yard.settle()
    assert len(yard.claims()) == 2


def test_the_quantity_is_changed_up_and_down(yard: Yard) -> None:
    pool = yard.pool(quantity=1)
    yard.settle()
    (first,) = yard.claims()
    _scale(yard, 4)
    yard.settle()
    assert len(yard.claims()) == 4
    _scale(yard, 2)
    yard.settle()
    assert len(yard.claims()) == 2
    assert first.id not in {claim.id for claim in yard.claims()}, "nodes of an older generation go first"
    _scale(yard, 0)
    yard.settle()
    assert not yard.claims()
    assert yard.now().generation == 4
    assert pool.generation == 1
    assert not yard.nodes.machines()


def test_claims_without_a_machine_are_given_back_first(yard: Yard) -> None:
    yard.pool(quantity=2)
    yard.settle()
    available = {claim.id for claim in yard.claims()}
    _scale(yard, 4)
    yard.look()
    assert len(yard.claims()) == 4
    _scale(yard, 2)
    yard.settle()
    assert {claim.id for claim in yard.claims()} == available


def test_a_lost_node_is_replaced_at_once(yard: Yard) -> None:
    yard.pool(quantity=2)
    yard.settle()
    lost, other = yard.claims()
    _fail(yard, lost, node_name="n1")
    yard.settle()
    assert lost.id not in {claim.id for claim in yard.claims()}
    assert other.id in {claim.id for claim in yard.claims()}
    assert [claim.phase for claim in yard.claims()] == ["Available"] * 2


def test_a_claim_that_never_became_a_node_is_replaced_after_a_pause_that_doubles(yard: Yard) -> None:
    yard.pool(quantity=1)
    pauses = []
    for _ in range(3):
        yard.look()
        (claim,) = yard.claims()
        _fail(yard, claim, node_name="")
        yard.look()
        due_at = yard.now().due_at
        assert due_at is not None
        yard.look()
        assert not [claim for claim in yard.claims() if claim.phase == "Pending"], "it waits"
        pauses.append(round(-yard.nodes.services.seconds_since(due_at)))
        yard.nodes.clock.advance(pauses[-1] + 1)
        yard.nodes.schedule()
        yard.nodes.relay()
    assert pauses == [30, 60, 120]
    yard.settle()
    assert (yard.now().failures, len(yard.claims())) == (0, 1), "a node that comes ends the pauses"


def test_a_pool_asks_at_once_for_another_type_where_a_launch_was_refused(yard: Yard) -> None:
    """The refused type is left out for a while. Where two dozen were refused in a row, the types are
    hardly to blame."""
    yard.pool(quantity=1)
    pauses = []
    for refused in [True] * 26 + [False]:
        yard.look()
        (claim,) = [claim for claim in yard.claims() if not claim.deleting]
        _fail(yard, claim, node_name="", launch_refused=refused)
        yard.look()
        pauses.append(-round(yard.nodes.services.seconds_since(str(yard.now().retry_at))))
        yard.nodes.clock.advance(pauses[-1] + 1)
    assert pauses == [0] * 24 + [30, 60, 120]


def test_claims_of_one_time_that_fail_one_after_the_other_are_one_failure(yard: Yard) -> None:
    yard.pool(quantity=3)
    yard.look()
    for claim in yard.claims():
        _fail(yard, claim, node_name="")
        yard.look()
        yard.nodes.clock.advance(1)
    pool = yard.now()
    assert pool.failures == 1
    text = f"0 of 3 nodes are available. The pool makes no node until {pool.retry_at}, because its claims became none"
    assert yard.condition(pool) == ("False", "Scaling", f"{text} once.")


def test_a_failure_of_long_ago_makes_no_pause_longer(yard: Yard) -> None:
    """Pods that went away in the meantime leave a pool without a node that would end its failures."""
    yard.pool(quantity=1)
    for pause, failures in ((3600, 1), (25 * 3600, 2), (0, 1)):
        yard.look()
        (claim,) = [claim for claim in yard.claims() if not claim.deleting]
        _fail(yard, claim, node_name="")
        yard.look()
        assert yard.now().failures == failures
        yard.nodes.clock.advance(pause)


def test_a_change_of_the_pool_ends_its_pause(yard: Yard) -> None:
    yard.pool(quantity=1)
    yard.look()
    _fail(yard, yard.claims()[0], node_name="")
    yard.look()
    _scale(yard, 2)
    yard.look()
    assert [claim.phase for claim in yard.claims() if not claim.deleting] == ["Pending"] * 2


def test_a_machine_that_is_kept_is_not_replaced_before_its_time(yard: Yard) -> None:
    yard.pool(quantity=1)
    yard.look()
    (claim,) = yard.claims()
    until = "2999-01-01T00:00:00.000Z"
    _fail(yard, claim, kept_until=until)
    yard.look()
    assert claim.id in {kept_claim.id for kept_claim in yard.claims() if not kept_claim.deleting}


def test_a_deleted_pool_gives_its_nodes_back_and_goes(yard: Yard) -> None:
    yard.pool(quantity=2)
    yard.settle()
    pools.delete_pool(yard.nodes.services, yard.current(), "workers", USER)
    pools.delete_pool(yard.nodes.services, yard.current(), "workers", USER)
    yard.settle()
    store = yard.nodes.services.store
    assert store.get(Pool, f"{yard.cluster.id}/workers") is None
    assert yard.nodes.nothing_left()
    assert not list(every(store, ClusterClaim))
    assert yard.reasons(f"{yard.cluster.id}/workers")[-2:] == ["DeletionRequested", "Deleted"]


def test_a_quota_stops_a_pool_and_is_named(yard: Yard) -> None:
    yard.nodes.services.store.commit(Put(Quota("nodeclaims", 12, yard.nodes.services.now())))
    yard.pool(quantity=15)
    yard.look()
    status, reason, message = yard.condition(yard.now())
    assert (status, reason) == ("False", "QuotaExceeded")
    assert message.endswith("limit of 12 would be exceeded. 3 nodes are missing.")
    assert len(yard.claims()) == 12, "all that fit are made"
    assert yard.now().due_at is not None


@pytest.mark.parametrize("most", range(1, 9))
def test_passes_that_overlap_make_nothing_twice(yard: Yard, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another pass runs to its end before the n-th commit of the first."""
    yard.pool(quantity=23)
    yard.before_commit(monkeypatch, most, yard.look)
    yard.look()
    yard.settle()
    assert len(yard.claims()) == 23
    assert yard.now().claims_made == 23


@pytest.mark.parametrize("most", range(1, 9))
def test_a_pass_that_dies_is_finished_by_the_next(yard: Yard, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    yard.pool(quantity=23)

    def die() -> None:
        raise KeyboardInterrupt

    yard.before_commit(monkeypatch, most, die)
    with contextlib.suppress(KeyboardInterrupt):
        while len(yard.passes) < most:
            yard.look()
            _scale(yard, 23 + len(yard.passes))
    assert len(yard.passes) < most, "it has died"
    yard.settle()
    assert len(yard.claims()) == yard.now().quantity == yard.now().claims_made


def test_a_cluster_that_goes_meanwhile_gets_no_claims(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    yard.pool(quantity=5)
    yard.before_commit(monkeypatch, 2, lambda: yard.put(status="deleting"))
    yard.look()
    assert not yard.claims()


def test_a_deleted_cluster_takes_its_pools_and_their_nodes_along(yard: Yard) -> None:
    yard.pool(quantity=2)
    yard.settle()
    yard.put(status="deleting")
    services = yard.nodes.services
    while not cluster_nodes.release(services, yard.current(), "s").done:
        yard.look()
        yard.nodes.relay()
    assert not list(every(services.store, Pool))
    assert not yard.nodes.machines()
    assert not list(every(services.store, ClusterClaim))


def test_claims_of_a_person_do_not_count_for_a_pool(yard: Yard) -> None:
    yard.nodes.claim("mine", cluster_ref=yard.cluster.id)
    yard.pool(quantity=1)
    yard.settle()
    assert [claim.pool for claim in pools.claims_of(yard.nodes.services, yard.cluster.id)] == ["", "workers"]


def test_a_claim_that_came_before_its_cluster_is_entered_when_that_is_there(yard: Yard) -> None:
    claim = yard.nodes.claim("early", cluster_ref="later", strict=False)
    yard.nodes.schedule()
    cluster = yard.world.create("later")
    yard.cluster = cluster
    yard.put(status="deleting")
    yard.nodes.schedule()
    assert pools.claims_of(yard.nodes.services, cluster.id) == [], "it waits for the next one of that name"
    yard.put(status="preparing")
    yard.nodes.schedule()
    assert [entered.id for entered in pools.claims_of(yard.nodes.services, cluster.id)] == [claim.id]
    assert yard.nodes.now(claim).reason == "ClusterNotReady"
    yard.put(status="ready")
    yard.nodes.schedule()
    assert [entered.id for entered in pools.claims_of(yard.nodes.services, cluster.id)] == [claim.id]
    delete_claim(yard.nodes.services, claim.id, USER)
    yard.nodes.relay()
    assert not list(every(yard.nodes.services.store, ClusterClaim))


def test_a_pool_is_looked_at_again_when_its_commit_was_lost(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    yard.pool(quantity=1)
    yard.before_commit(monkeypatch, 1, lambda: _scale(yard, 2))
    assert yard.look()["lost"] == 1
    assert len(yard.claims()) == 2, "in the same pass, with what it is now"


def _scale(yard: Yard, quantity: int) -> None:
    services = yard.nodes.services
    pool = yard.now()
    changed = reconcile_input(pool, quantity)
    pools.change_pool(services, yard.current(), pool, pool.version, changed, USER, "r")


def reconcile_input(pool: Pool, quantity: int) -> NewPool:
    return NewPool(name=pool.name, form=pool.form, document=pool.document, **{**pool.spec(), "quantity": quantity})


def _fail(yard: Yard, claim: NodeClaim, **fields: object) -> None:
    current = yard.nodes.now(claim)
    changed = replace(current, phase="Failed", due_at=None, version=current.version + 1, **fields)
    yard.nodes.services.store.commit(Replace(changed))


def test_the_version_guards_what_is_given_back(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of two passes that see too many nodes chooses which go."""
    yard.pool(quantity=4)
    yard.settle()
    _scale(yard, 2)
    yard.before_commit(monkeypatch, 1, yard.look)
    yard.look()
    yard.settle()
    assert len(yard.claims()) == 2
    with pytest.raises(Conflict):
        yard.nodes.services.store.commit(Replace(replace(yard.now(), version=1)))
