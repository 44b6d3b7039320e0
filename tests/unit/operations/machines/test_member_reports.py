"""A member of a control plane gets the key of the authorities until it has joined, and is told who leaves etcd."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from functions.machines import handler
from stockyard import wiring
from stockyard.domain.clusters.join_tokens import certificate_key
from stockyard.domain.records import AuditRecord, Cluster, Fact, NodeClaim
from stockyard.errors import Forbidden, NotFound, RequestInProgress, Unauthorized
from stockyard.operations.engine.ledger import lines_of
from stockyard.operations.listing import every
from stockyard.operations.machines.bootstrap import bootstrap_machine
from stockyard.operations.machines.join import join_machine
from stockyard.operations.machines.member_plan import PLAN, Removals, member_of, removals
from stockyard.operations.machines.member_reports import MemberReply, report_member
from stockyard.ports import Put
from tests.harness.crash.machine_report import machine_report
from tests.unit.operations.conftest import World
from tests.unit.operations.machines.test_bootstrap_by_token import boot
from tests.unit.operations.machines.test_join import KEY, PROOF, Yard, _until_registering


@pytest.fixture
def yard(world: World) -> Yard:
    yard = Yard.of(world)
    small = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "maxCapacity": 2}
    yard.nodes.provider("lab", small, block={"cloudAccount": 1})
    yard.boots = False
    return yard


def booted(yard: Yard, *, control_plane: bool) -> NodeClaim:
    """A claim whose machine runs, has proven itself and has a token to join with."""
    claim = yard.nodes.claim("member", cluster_ref="demo", control_plane=control_plane)
    yard.nodes.schedule()
    _until_registering(yard, claim)
    yard.meanwhile()
    yard.meanwhile()
    there = yard.nodes.now(claim)
    yard.prove(there.machine_id)  # type: ignore[attr-defined]
    return there


def plan(yard: Yard, claim_id: str, before: list[str], after: list[str], *, done: bool = False) -> None:
    """Write what the action that changes the members has written."""
    value = {"claim": claim_id, "remove_before": before, "remove_after": after, "done": done}
    services = yard.nodes.services
    services.store.commit(Put(Fact(f"{yard.cluster.id}/{PLAN}", json.dumps(value), services.now())))


def report(yard: Yard, claim: NodeClaim, *removed: str) -> MemberReply:
    return report_member(yard.nodes.services, claim.id, PROOF, "joined", removed)


def test_a_member_is_told_how_to_join_a_control_plane_and_a_worker_is_not(yard: Yard) -> None:
    worker = booted(yard, control_plane=False)
    assert join_machine(yard.nodes.services, KEY, worker.id, PROOF).control_plane is None
    with pytest.raises(Forbidden, match="not one of the control plane's"):
        report(yard, worker)
    assert member_of(yard.nodes.services, worker) is None


def test_the_key_of_the_authorities_is_given_until_the_member_has_joined(yard: Yard) -> None:
    claim = booted(yard, control_plane=True)
    plan(yard, claim.id, ["dead"], [])
    answer = join_machine(yard.nodes.services, KEY, claim.id, PROOF)
    assert answer.control_plane is not None
    assert answer.control_plane.certificate_key == certificate_key(KEY, yard.cluster.id)
    assert answer.control_plane.remove_before == ["dead"]
    assert answer.control_plane.workloads is False
    assert join_machine(yard.nodes.services, KEY, claim.id, PROOF) == answer, "an answer may be lost"
    report(yard, claim, "dead")
    with pytest.raises(Forbidden, match="joined already"):
        join_machine(yard.nodes.services, KEY, claim.id, PROOF)


def test_the_key_is_neither_stored_nor_shown(yard: Yard) -> None:
    claim = booted(yard, control_plane=True)
    answer = join_machine(yard.nodes.services, KEY, claim.id, PROOF)
    report(yard, claim)
    key = certificate_key(KEY, yard.cluster.id)
    assert key not in repr(answer)
    assert key not in json.dumps(list(yard.nodes.registry.table.items()), default=str)


def test_the_key_is_another_one_for_each_cluster_and_installation() -> None:
    keys = {certificate_key(KEY, "clu_1"), certificate_key(KEY, "clu_2"), certificate_key(b"another", "clu_1")}
    assert len(keys) == 3
    assert {len(bytes.fromhex(key)) for key in keys} == {32}, "as kubeadm wants it"
    with pytest.raises(ValueError, match="key"):
        certificate_key(b"", "clu_1")


def test_a_member_is_told_who_leaves_until_it_says_that_they_have_left(yard: Yard) -> None:
    claim = booted(yard, control_plane=True)
    reply = report(yard, claim)
    assert (reply.remove, reply.done) == ((), False), "nobody has planned anything yet"
    plan(yard, claim.id, ["dead"], ["old"])
    assert report(yard, claim).remove == ("dead", "old")
    assert report(yard, claim, "dead").remove == ("old",)
    plan(yard, claim.id, ["dead"], ["old"], done=True)
    reply = report(yard, claim, "dead")
    assert (reply.remove, reply.done) == (("old",), False), "done is only who has nothing left to remove"
    assert report(yard, claim, "old", "dead").done
    fact = yard.nodes.services.store.get(Fact, f"{claim.id}/member")
    assert fact is not None
    assert json.loads(fact.value) == {"state": "joined", "removed": ["dead", "old"], "machine": claim.machine_id}


def test_a_report_that_says_nothing_new_writes_nothing(yard: Yard) -> None:
    claim = booted(yard, control_plane=True)
    assert report(yard, claim, "old").news
    before = {fact.id: fact for fact in every(yard.nodes.services.store, Fact)}
    assert not report(yard, claim, "old").news
    assert {fact.id: fact for fact in every(yard.nodes.services.store, Fact)} == before


def test_only_the_claims_machine_reports(yard: Yard) -> None:
    claim = booted(yard, control_plane=True)
    yard.prove("i-stranger")  # type: ignore[attr-defined]
    with pytest.raises(Unauthorized, match="not recorded"):
        report(yard, claim)
    with pytest.raises(Unauthorized):
        report_member(yard.nodes.services, claim.id, {"token": "0" * 64}, "joined", ())
    yard.prove(claim.machine_id)  # type: ignore[attr-defined]
    with pytest.raises(NotFound):
        report_member(yard.nodes.services, "ncl_01ARZ3NDEKTSV4RRFFQ69G5FAV", PROOF, "joined", ())
    assert member_of(yard.nodes.services, claim) is None


def test_a_plan_for_a_later_member_ends_this_ones_work(yard: Yard) -> None:
    claim = booted(yard, control_plane=True)
    services = yard.nodes.services
    plan(yard, "ncl_" + "0" * 26, [], ["somebody"])
    assert removals(services, yard.cluster, claim) == Removals(), "it is of one before"
    plan(yard, "ncl_" + "Z" * 26, [], ["somebody"])
    assert removals(services, yard.cluster, claim) == Removals(done=True)


def test_the_word_of_a_machine_before_is_not_that_of_this_one(yard: Yard) -> None:
    claim = booted(yard, control_plane=True)
    report(yard, claim)
    value = {"state": "joined", "removed": [], "machine": "i-before"}
    yard.nodes.services.store.commit(Put(Fact(f"{claim.id}/member", json.dumps(value), yard.nodes.services.now())))
    assert member_of(yard.nodes.services, claim) is None
    assert join_machine(yard.nodes.services, KEY, claim.id, PROOF).control_plane is not None


def test_one_machine_initialises_the_control_plane_while_it_is_there(world: World) -> None:
    cluster = world.create()
    boot(world, cluster)
    proof = world.proof(cluster)
    services, lease = world.services, f"{cluster.id}/bootstrapped"
    bootstrap_machine(services, cluster.id, proof)
    holder = services.store.get(Fact, lease)
    assert holder is not None
    bootstrap_machine(services, cluster.id, proof)
    assert services.store.get(Fact, lease) == holder, "asking again is the same lease"
    line = next(line for line in lines_of(services, cluster.id, "control_plane") if line.vendor_id == holder.value)
    other = replace(line, id=line.id + "-2", key="another", vendor_id="i-another")
    services.store.commit(Put(other), Put(Fact(lease, "i-another", services.now())))
    with pytest.raises(Forbidden, match="Another machine"):
        bootstrap_machine(services, cluster.id, proof)
    services.store.commit(Put(replace(other, state="gone")))
    bootstrap_machine(services, cluster.id, proof)
    assert services.store.get(Fact, lease) == replace(holder, time=services.now())


def test_a_member_without_a_token_to_join_with_waits(yard: Yard) -> None:
    claim = yard.nodes.claim("member", cluster_ref="demo", control_plane=True)
    yard.nodes.schedule()
    _until_registering(yard, claim)
    yard.prove(yard.nodes.now(claim).machine_id)  # type: ignore[attr-defined]
    with pytest.raises(RequestInProgress):
        join_machine(yard.nodes.services, KEY, claim.id, PROOF)


def _posted(claim: NodeClaim, cluster: Cluster, **more: Any) -> dict[str, Any]:
    body = {**PROOF, "cluster_id": cluster.id, "state": "joined", **more}
    path = "/v1/node-claims/{id}/member-reports"
    return {
        "version": "2.0",
        "routeKey": f"POST {path}",
        "rawPath": path.replace("{id}", claim.id),
        "pathParameters": {"id": claim.id},
        "headers": {"content-type": "application/json"},
        "requestContext": {"requestId": "req-1", "stage": "$default", "http": {"method": "POST", "path": path}},
        "body": json.dumps(body),
        "isBase64Encoded": False,
    }


def test_the_kubeconfig_of_a_member_replaces_the_first_ones(
    yard: Yard, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first kubeconfig ends a year after it was made, whether its machine is still there or not."""
    claim = booted(yard, control_plane=True)
    services = yard.nodes.services
    monkeypatch.setattr(wiring, "registry", lambda: world.registry)
    monkeypatch.setattr(wiring, "services", lambda _: services)
    monkeypatch.setattr(wiring, "store", world.registry.store)
    monkeypatch.setattr(wiring, "configuration", lambda: services.settings)
    own = machine_report(yard.cluster.endpoint)
    document = {**json.loads(own["kubeconfig"]), "current-context": "of the member"}
    good = {**own, "kubeconfig": json.dumps(document)}
    foreign = machine_report("https://elsewhere:6443")
    answers = [handler.http.handle(_posted(claim, yard.cluster, **more), None) for more in (foreign, good)]
    assert [answer["statusCode"] for answer in answers] == [422, 200], answers
    assert world.secrets.values[f"acme/{yard.cluster.id}/kubeconfig"] == good["kubeconfig"]
    (audited,) = [record for record in every(services.store, AuditRecord) if record.action == "ReportMember"]
    assert (audited.actor, audited.subject) == ("node:member", claim.id)
