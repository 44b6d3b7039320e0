"""A control plane without keys of its cloud proves itself by the token of its user data, and later by another one."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace

import pytest

from functions.machines import handler
from stockyard import wiring
from stockyard.domain.clusters.join_tokens import machine_token, renewal_token
from stockyard.domain.records import AuditRecord, Cluster, Fact
from stockyard.errors import Fenced, Forbidden, InvalidInput, RequestInProgress, Unauthorized
from stockyard.operations.clusters.await_report import report_ready
from stockyard.operations.clusters.changes.resume import resume_cluster
from stockyard.operations.clusters.removal.delete import delete_cluster
from stockyard.operations.engine.advance import Fence
from stockyard.operations.listing import every
from stockyard.operations.machines.attest import control_plane_fact, issue_control_plane_token
from stockyard.operations.machines.boot import last_words, report_of_control_plane
from stockyard.operations.machines.bootstrap import ENDPOINT_SECONDS, Credentials, bootstrap_machine
from stockyard.ports import CloudWork, Outcome, Replace
from stockyard.ports.clusters import TOKEN
from tests.harness.crash.machine_report import machine_report
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.conftest import MemoryProvider, World

PUBLIC, PRIVATE, INTERNAL = "https://198.51.100.7:6443", "10.160.0.5", "https://demo.stockyard.internal:6443"
REFUSED = r"^the proof of identity is not accepted$"


@dataclass
class TokenProvider(MemoryProvider):
    """A driver whose control plane has no keys of its cloud, nor a balancer before it."""

    tokens: list[str] = field(default_factory=list)
    """Those that were given out for user data, in order."""

    def attestation(self, cluster: Cluster) -> str:
        return TOKEN

    def ensure(self, phase: str, work: CloudWork) -> Outcome:
        outcome = super().ensure(phase, work)
        if phase == "endpoint":
            return replace(outcome, facts={})
        if phase == "control_plane":
            self.tokens.append(work.machine_token)
            addresses = {"endpoint": PUBLIC, "machine_endpoint": INTERNAL, "private_address": PRIVATE}
            return replace(outcome, facts={**outcome.facts, **addresses})
        assert work.machine_token == "", "only the phase that makes the machine is told its token"
        return outcome


class Booted(Exception):
    """The machine is up and has not reported yet."""


@dataclass
class Booting:
    """A cluster whose control plane has just booted."""

    world: World
    provider: TokenProvider
    new_cluster: Cluster

    @property
    def cluster(self) -> Cluster:
        return self.world.cluster(self.new_cluster)

    @property
    def token(self) -> str:
        return self.provider.tokens[-1]

    def bootstrap(self, token: str | None = None) -> Credentials:
        return bootstrap_machine(
            self.world.services, self.new_cluster.id, {"token": self.token if token is None else token}
        )

    def refused(self, token: str, cluster_id: str = "") -> bool:
        """Whether it is refused in the words of every other refusal."""
        with pytest.raises(Unauthorized, match=REFUSED):
            bootstrap_machine(self.world.services, cluster_id or self.new_cluster.id, {"token": token})
        return True

    def becomes_ready(self) -> Credentials:
        """The machine proves itself and reports, as ``World.report`` does for one that signs."""
        credentials = self.bootstrap()
        assert self.world.drive(self.cluster, "provision_cluster") == "ready"
        return credentials

    def renew(self, token: str | None) -> str:
        """A renewed kubeconfig is posted with this token. The one that people get then."""
        config = json.dumps({**json.loads(machine_report(PUBLIC)["kubeconfig"]), "current-context": "renewed"})
        report_ready(self.world.services, self.cluster, config, "Q0E=", None if token is None else {"token": token})
        return self.world.secrets.values[f"acme/{self.new_cluster.id}/kubeconfig"]

    def fact(self) -> Fact | None:
        return self.world.services.store.get(Fact, control_plane_fact(self.new_cluster.id))


def booted(world: World, name: str = "demo") -> Booting:
    provider = world.services.cluster_drivers["memory"]
    assert isinstance(provider, TokenProvider)
    cluster = world.create(name)
    boot(world, cluster)
    return Booting(world, provider, cluster)


def boot(world: World, cluster: Cluster) -> None:
    """Run the phases until the machine would report."""

    def stop(*_: object) -> None:
        raise Booted

    with pytest.raises(Booted):
        world.drive(cluster, "provision_cluster", before=stop)


@pytest.fixture
def booting(world: World) -> Booting:
    provider = TokenProvider()
    world.provider = provider
    world.services = with_ports(
        world.services, cluster_drivers={"memory": provider}, clouds={**world.services.clouds, "aws": provider}
    )
    return booted(world)


def test_the_machine_gets_what_it_needs_until_it_has_reported(booting: Booting) -> None:
    answer = booting.bootstrap()
    assert (answer.client_id, answer.client_secret) == (
        booting.new_cluster.client_id,
        booting.world.identity.client_secret(booting.new_cluster.client_id),
    )
    assert (answer.endpoint, answer.machine_endpoint, answer.certificate_names) == (PUBLIC, INTERNAL, (PRIVATE,))
    assert answer.renewal_token == renewal_token(booting.world.services.token_key, booting.new_cluster.id)
    assert booting.bootstrap() == answer, "an answer may be lost"
    booting.world.report(booting.cluster)
    with pytest.raises(Forbidden):
        booting.bootstrap()


def test_the_token_is_kept_as_a_hash_and_shown_nowhere(booting: Booting) -> None:
    answer = booting.bootstrap()
    assert len(bytes.fromhex(booting.token)) * 8 == 256
    fact = booting.fact()
    assert fact is not None
    assert fact.value == hashlib.sha256(booting.token.encode()).hexdigest()
    stored_text = json.dumps(list(booting.world.registry.table.items()), default=str)
    for secret in (booting.token, answer.renewal_token):
        assert secret not in stored_text
        assert secret not in repr(answer)
    assert booting.token != answer.renewal_token


def test_any_other_token_is_refused_in_the_same_words(booting: Booting) -> None:
    key, own = booting.world.services.token_key, booting.token
    other = booted(booting.world, "other")
    assert booting.bootstrap(own)
    assert booting.refused(other.token), "another cluster's"
    assert booting.refused(machine_token(key, booting.new_cluster.id, booting.cluster.attempt + 1)), "another attempt's"
    assert booting.refused(machine_token(b"another key", booting.new_cluster.id, 1))
    assert booting.refused(machine_token(key, "ncl_01ARZ3NDEKTSV4RRFFQ69G5FAV", 1)), "that of a claim"
    assert booting.refused(renewal_token(key, booting.new_cluster.id)), "the one for later"
    for token in ("", own[:-1], own + "0", own.upper(), "0" * 64, "\u00e9" * 64):
        assert booting.refused(token)
    assert booting.refused(own, "clu_01ARZ3NDEKTSV4RRFFQ69G5FAV"), "there is no such cluster"


def test_a_token_is_valid_for_thirty_minutes(booting: Booting) -> None:
    booting.world.clock.advance(1790)
    assert booting.bootstrap()
    before = booting.fact()
    booting.world.clock.advance(20)
    assert booting.refused(booting.token)
    assert booting.fact() == before, "proving makes no token younger"


def test_a_phase_that_waits_long_for_room_lengthens_the_token(booting: Booting) -> None:
    before, fence = booting.fact(), Fence.of(booting.cluster)

    def issued() -> str:
        return issue_control_plane_token(booting.world.services, booting.cluster, fence)

    booting.world.clock.advance(890)
    assert (issued(), booting.fact()) == (booting.token, before), "nothing is written at each try"
    for _ in range(3):
        booting.world.clock.advance(1000)
        assert issued() == booting.token
    booting.world.clock.advance(1790)
    assert booting.bootstrap()
    booting.world.clock.advance(20)
    assert booting.refused(booting.token)


def test_the_machine_waits_until_its_address_is_known(booting: Booting) -> None:
    store, cluster = booting.world.services.store, booting.cluster
    store.commit(Replace(replace(cluster, endpoint=None, version=cluster.version + 1)))
    with pytest.raises(RequestInProgress) as caught:
        booting.bootstrap()
    assert (caught.value.status, caught.value.retry_after) == (409, ENDPOINT_SECONDS)
    assert store.get(Fact, f"{cluster.id}/bootstrapped") is None, "nobody may report yet"
    cluster = booting.cluster
    store.commit(Replace(replace(cluster, endpoint=PUBLIC, version=cluster.version + 1)))
    assert booting.bootstrap().endpoint == PUBLIC


def test_a_resume_makes_the_token_of_the_attempt_before_worthless(booting: Booting) -> None:
    world, first = booting.world, booting.token
    assert world.drive(booting.cluster, "provision_cluster", report=False) == "not_deployed"
    assert booting.refused(first), "a cluster that has failed waits for no machine"
    stale = Fence.of(booting.cluster)
    resumed = resume_cluster(world.services, booting.new_cluster.id, "ann")
    boot(world, resumed)
    assert booting.token != first
    assert booting.refused(first)
    assert booting.bootstrap()
    with pytest.raises(Fenced):
        issue_control_plane_token(world.services, booting.cluster, stale)
    assert booting.bootstrap()


def test_a_ready_cluster_takes_a_kubeconfig_with_the_renewal_token_alone(booting: Booting) -> None:
    renewal = booting.becomes_ready().renewal_token
    kubeconfig = booting.world.secrets.values[f"acme/{booting.new_cluster.id}/kubeconfig"]
    assert booting.refused(booting.token), "it has its machine"
    assert booting.renew(None) == kubeconfig, "without a proof nothing changes"
    key = booting.world.services.token_key
    for token in (booting.token, machine_token(key, booting.new_cluster.id, 0), "0" * 64, "\u00e9" * 64):
        with pytest.raises(Unauthorized, match=REFUSED):
            booting.renew(token)
    assert "renewed" in booting.renew(renewal)
    with pytest.raises(InvalidInput):
        report_ready(booting.world.services, booting.cluster, **machine_report(INTERNAL), proof={"token": renewal})


def test_another_clusters_renewal_token_renews_nothing(booting: Booting) -> None:
    booting.becomes_ready()
    other = booted(booting.world, "other")
    renewal = other.becomes_ready().renewal_token
    with pytest.raises(Unauthorized, match=REFUSED):
        booting.renew(renewal)


def test_the_fact_goes_with_the_cluster(booting: Booting) -> None:
    booting.becomes_ready()
    assert booting.fact() is not None
    deleting = delete_cluster(booting.world.services, booting.new_cluster.id, "ann")
    assert booting.world.drive(deleting, "delete_cluster") == "gone"
    assert [fact.id for fact in every(booting.world.services.store, Fact)] == []
    assert booting.refused(booting.token)


def test_the_tokens_machine_tells_how_its_boot_goes(booting: Booting) -> None:
    step = {"step": "packages", "exit": None, "lines": ""}
    report_of_control_plane(booting.world.services, booting.new_cluster.id, {"token": booting.token}, step)
    assert "at the step packages" in last_words(booting.world.services, booting.cluster)
    with pytest.raises(Unauthorized, match=REFUSED):
        report_of_control_plane(booting.world.services, booting.new_cluster.id, {"token": "0" * 64}, step)


def test_a_signed_request_proves_nothing_in_a_cloud_that_gives_no_keys(booting: Booting) -> None:
    """The cloud of the account says whose keys count: Cudo's machines have none, whatever role a caller has."""
    world, cluster = booting.world, booting.cluster
    proof = world.proof(cluster)
    world.services = with_ports(world.services, clouds={**world.services.clouds, "aws": world.services.clouds["cudo"]})
    with pytest.raises(Unauthorized, match="not signed by a machine of this cluster"):
        bootstrap_machine(world.services, cluster.id, proof)


def test_the_route_takes_a_token_and_keeps_it_nowhere(
    booting: Booting, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = booting.world
    monkeypatch.setattr(wiring, "registry", lambda: world.registry)
    monkeypatch.setattr(wiring, "services", lambda _: world.services)
    monkeypatch.setattr(wiring, "store", world.registry.store)
    monkeypatch.setattr(wiring, "configuration", lambda: world.services.settings)
    bodies: list[dict[str, str]] = [{"token": booting.token}, {"token": "f" * 64}, {"token": "short"}]
    answers = [handler.http.handle(_posted(booting.new_cluster.id, body), None) for body in bodies]
    assert [answer["statusCode"] for answer in answers] == [200, 401, 422]
    answer = json.loads(answers[0]["body"])
    assert (answer["machine_endpoint"], answer["certificate_names"]) == (INTERNAL, [PRIVATE])
    (audited,) = [record for record in every(world.services.store, AuditRecord) if record.action == "BootstrapMachine"]
    assert (audited.actor, audited.subject) == (f"client:{booting.new_cluster.client_id}", booting.new_cluster.id)
    log = repr([vars(record) for record in caplog.records])
    assert log.count("/bootstrap") == len(answers)
    stored_text = json.dumps(list(world.registry.table.items()), default=str)
    for text in (stored_text, log):
        for secret in (booting.token, answer["renewal_token"], answer["client_secret"], "f" * 64):
            assert secret not in text


def _posted(cluster_id: str, body: dict[str, str]) -> dict[str, object]:
    path = "/v1/clusters/{id}/bootstrap"
    return {
        "version": "2.0",
        "routeKey": f"POST {path}",
        "rawPath": path.replace("{id}", cluster_id),
        "pathParameters": {"id": cluster_id},
        "headers": {"content-type": "application/json"},
        "requestContext": {"requestId": "req-1", "stage": "$default", "http": {"method": "POST", "path": path}},
        "body": json.dumps(body),
        "isBase64Encoded": False,
    }
