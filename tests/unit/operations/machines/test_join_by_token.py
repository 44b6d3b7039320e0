"""A machine without keys of a cloud proves itself by the token of its user data: which token, how long, how often."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from functions.machines import handler
from stockyard import wiring
from stockyard.domain.clusters.join_tokens import machine_token
from stockyard.domain.models.base import read
from stockyard.domain.models.clusters.observations import JoinProof
from stockyard.domain.records import AuditRecord, Fact, NodeClaim, NodeProvider
from stockyard.errors import Fenced, Forbidden, InvalidInput, RequestInProgress, Unauthorized
from stockyard.operations.engine.advance import Fence
from stockyard.operations.listing import every
from stockyard.operations.machines.attest import issue_token
from stockyard.operations.machines.join import JoinConfiguration, join_machine
from stockyard.ports import Outcome
from stockyard.ports.clusters import SIGNATURE
from stockyard.ports.node_work import NodeWork
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.conftest import World
from tests.unit.operations.machines.test_join import KEY, Silent, Yard

CLUSTER = "clu_01KDVJXQ80000000000000000A"


@dataclass
class Booting:
    """A claim whose machine was launched and asks how to join. ``user_data`` are the tokens, by claim."""

    yard: Yard
    user_data: dict[str, str] = field(default_factory=dict)
    work: list[NodeWork] = field(default_factory=list)

    def claim(self, name: str = "worker", cluster_ref: str = "demo") -> NodeClaim:
        """A new claim whose machine runs and has not joined."""
        nodes = self.yard.nodes
        claim = nodes.claim(name, cluster_ref=cluster_ref)
        nodes.schedule()
        bound = nodes.now(claim)
        workflow_input = {
            "tenant": "acme",
            "claim_id": claim.id,
            "operation_id": bound.operation_id,
            "attempt": bound.attempt,
        }
        nodes.run("provision_node", workflow_input, most=2)
        return nodes.now(claim)

    def join(self, claim: NodeClaim, token: str | None = None) -> JoinConfiguration:
        """The data for the machine, with this token or else its own."""
        proof = {"token": self.user_data[claim.id] if token is None else token}
        return join_machine(self.yard.nodes.services, KEY, claim.id, proof)

    def invited(self, claim: NodeClaim) -> JoinConfiguration:
        """The answer once the cluster's agent has made the token to join with."""
        for _ in range(2):
            self.yard.meanwhile()
        return self.join(claim)

    def refused(self, claim: NodeClaim, token: str | None = None) -> bool:
        """Whether the token is refused as every other wrong one is."""
        with pytest.raises(Unauthorized, match=r"^the proof of identity is not accepted$"):
            self.join(claim, token)
        return True


class TokenRecorder(Silent):
    """Machines whose boot the test plays: it sees the work of each launch."""

    see: Callable[[NodeWork], None]

    def launch(self, work: NodeWork) -> Outcome:
        self.see(work)
        return super().launch(work)


class Signing(TokenRecorder):
    """Machines that have keys of a cloud."""

    def attestation(self, provider: NodeProvider) -> str:
        return SIGNATURE


@pytest.fixture
def booting(world: World, request: pytest.FixtureRequest) -> Booting:
    yard = Yard.of(world)
    yard.boots = False
    small = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}}
    yard.nodes.provider("lab", small, block={"joinSeconds": "never"})
    source = getattr(request, "param", TokenRecorder)(world.registry.store)
    yard.nodes.services = with_ports(yard.nodes.services, node_sources={"simulated": source})
    booting_yard = Booting(yard)

    def see(work: NodeWork) -> None:
        booting_yard.user_data[work.claim.id] = work.machine_token
        booting_yard.work.append(work)

    source.see = see
    return booting_yard


def test_the_token_is_taken_again_until_the_node_has_joined(booting: Booting) -> None:
    claim = booting.claim()
    with pytest.raises(RequestInProgress):
        booting.join(claim)
    first = booting.invited(claim)
    assert (first.node_name, first.endpoint) == ("worker", booting.yard.cluster.endpoint)
    assert booting.join(claim) == first, "an answer may be lost"
    booting.yard.rig.join(booting.yard.agent, first.token, booting.yard.node(first))
    nodes = booting.yard.nodes
    nodes.meanwhile = booting.yard.meanwhile
    assert nodes.relay() == ["available"]
    with pytest.raises(Forbidden):
        booting.join(claim)


def test_any_other_token_is_refused_in_the_same_words(booting: Booting) -> None:
    claim, stranger = booting.claim(), booting.claim("other")
    booting.invited(claim)
    own, key = booting.user_data[claim.id], booting.yard.nodes.services.token_key
    assert own == machine_token(key, claim.id, claim.attempt)
    assert booting.refused(claim, booting.user_data[stranger.id])
    assert booting.refused(claim, machine_token(key, claim.id, claim.attempt + 1))
    assert booting.refused(claim, machine_token(b"another key", claim.id, claim.attempt))
    for token in ("", own[:-1], own + "0", own.upper(), "0" * 64, "\u00e9" * 64):
        assert booting.refused(claim, token)
    assert booting.refused(replace(claim, id="ncl_01ARZ3NDEKTSV4RRFFQ69G5FAV"), own), "there is no such claim"


def test_a_token_is_of_its_tenant_alone(booting: Booting) -> None:
    claim = booting.claim()
    booting.invited(claim)
    nodes = booting.yard.nodes
    stranger = replace(nodes.services, store=nodes.registry.store("globex"))
    with pytest.raises(Unauthorized):
        join_machine(stranger, KEY, claim.id, {"token": booting.user_data[claim.id]})


def test_a_token_is_valid_for_thirty_minutes(booting: Booting) -> None:
    claim = booting.claim()
    fact_before = _fact(booting, claim)
    booting.invited(claim)
    booting.yard.nodes.clock.advance(1790)
    assert booting.join(claim)
    booting.yard.nodes.clock.advance(20)
    assert booting.refused(claim)
    assert _fact(booting, claim) == fact_before, "joining makes no token younger"


def test_a_launch_that_waits_long_for_room_lengthens_the_token(booting: Booting) -> None:
    claim, nodes = booting.claim(), booting.yard.nodes
    before, fence = _fact(booting, claim), Fence.of(claim)
    booting.invited(claim)
    nodes.clock.advance(890)
    assert issue_token(nodes.services, claim, fence) == booting.user_data[claim.id]
    assert _fact(booting, claim) == before, "nothing is written at each try"
    for _ in range(3):
        nodes.clock.advance(1000)
        assert issue_token(nodes.services, claim, fence) == booting.user_data[claim.id]
    nodes.clock.advance(1790)
    assert booting.join(claim)
    nodes.clock.advance(20)
    assert booting.refused(claim)


def test_a_claim_on_its_way_out_is_joined_by_nobody(booting: Booting) -> None:
    claim = booting.claim()
    booting.invited(claim)
    booting.yard.nodes.delete(claim)
    assert booting.refused(claim)


def test_a_token_of_an_earlier_attempt_is_refused(booting: Booting) -> None:
    claim = booting.claim()
    nodes = booting.yard.nodes
    fence = Fence.of(claim)
    assert issue_token(nodes.services, claim, fence) == booting.user_data[claim.id], "a launch is repeated"
    with pytest.raises(Fenced):
        issue_token(nodes.services, claim, replace(fence, attempt=claim.attempt + 1))
    later = replace(claim, attempt=claim.attempt + 1)
    assert nodes.services.store.get(Fact, f"{claim.id}/machine_token-{later.attempt}") is None


def test_the_token_is_kept_as_a_hash_and_shown_nowhere(booting: Booting) -> None:
    claim = booting.claim()
    booting.invited(claim)
    token = booting.user_data[claim.id]
    assert len(bytes.fromhex(token)) * 8 >= 128
    assert _fact(booting, claim).value == hashlib.sha256(token.encode()).hexdigest()
    stored_text = json.dumps(list(booting.yard.nodes.registry.table.items()), default=str)
    for text in (stored_text, repr(booting.work), "".join(booting.yard.rig.logs)):
        assert token not in text


def test_a_machine_of_no_cluster_is_told_no_token(booting: Booting) -> None:
    claim = booting.claim(cluster_ref="")
    assert booting.user_data[claim.id] == ""


@pytest.mark.parametrize("booting", [Signing], indirect=True)
def test_a_machine_that_signs_is_told_no_token(booting: Booting) -> None:
    claim = booting.claim()
    assert booting.user_data[claim.id] == ""
    assert [fact for fact in every(booting.yard.nodes.services.store, Fact) if "machine_token" in fact.id] == []
    assert booting.refused(claim, machine_token(booting.yard.nodes.services.token_key, claim.id, claim.attempt))


def test_the_route_takes_a_token_and_keeps_it_nowhere(
    booting: Booting, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    nodes, claim = booting.yard.nodes, booting.claim()
    first = booting.invited(claim)
    monkeypatch.setattr(wiring, "registry", lambda: nodes.registry)
    monkeypatch.setattr(wiring, "services", lambda _: nodes.services)
    monkeypatch.setattr(wiring, "store", nodes.registry.store)
    monkeypatch.setattr(wiring, "machine_key", lambda: KEY)
    monkeypatch.setattr(wiring, "configuration", lambda: nodes.services.settings)
    token = booting.user_data[claim.id]
    answers = [
        handler.http.handle(_posted(claim.id, {"cluster_id": booting.yard.cluster.id, **proof}), None)
        for proof in ({"token": token}, {"token": "f" * 64}, {"token": token, "method": "GET"})
    ]
    assert [answer["statusCode"] for answer in answers] == [200, 401, 422]
    assert json.loads(answers[0]["body"])["token"] == first.token
    (audited,) = [record for record in every(nodes.services.store, AuditRecord) if record.action == "JoinMachine"]
    assert (audited.actor, audited.subject, audited.outcome) == ("node:worker", claim.id, "done")
    log = repr([vars(record) for record in caplog.records])
    assert log.count("/join") == len(answers)
    stored_text = json.dumps(list(nodes.registry.table.items()), default=str)
    for text in (stored_text, log, *(json.dumps(answer) for answer in answers)):
        assert token not in text
        assert "f" * 64 not in text


def _posted(claim_id: str, body: dict[str, object]) -> dict[str, object]:
    path = "/v1/node-claims/{id}/join"
    return {
        "version": "2.0",
        "routeKey": f"POST {path}",
        "rawPath": path.replace("{id}", claim_id),
        "pathParameters": {"id": claim_id},
        "headers": {"content-type": "application/json"},
        "requestContext": {"requestId": "req-1", "stage": "$default", "http": {"method": "POST", "path": path}},
        "body": json.dumps(body),
        "isBase64Encoded": False,
    }


SIGNED = {"method": "GET", "url": "https://sts.example.test/", "headers": {}}


@pytest.mark.parametrize(
    "proof",
    [
        {},
        {"token": "short"},
        {"token": "x" * 257},
        {"token": None},
        {"token": 5},
        {"token": "x" * 64, **SIGNED},
        {"token": "x" * 64, "method": None},
        {**SIGNED, "token": None},
        {"method": "GET", "headers": {}},
        {**SIGNED, "url": None},
        {"token": "x" * 64, "claim": "y"},
    ],
)
def test_a_body_with_no_proof_or_two_is_refused_without_repeating_it(proof: dict[str, object]) -> None:
    with pytest.raises(InvalidInput) as caught:
        read(JoinProof, {"cluster_id": CLUSTER, **proof})
    assert "xxx" not in f"{caught.value!r} {caught.value} {caught.value.__cause__!r}"


def test_a_body_has_either_proof() -> None:
    token = read(JoinProof, {"cluster_id": CLUSTER, "token": "x" * 64})
    assert token.proof() == {"token": "x" * 64}
    assert "xxx" not in repr(token)
    assert read(JoinProof, {"cluster_id": CLUSTER, **SIGNED}).proof() == SIGNED


def _fact(booting: Booting, claim: NodeClaim) -> Fact:
    fact = booting.yard.nodes.services.store.get(Fact, f"{claim.id}/machine_token-{claim.attempt}")
    assert fact is not None
    return fact
