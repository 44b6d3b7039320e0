"""Certificates of kubelets: a token's holder becomes the node of its claim and no other; nodes serve under their own
names. Each refusal differs from what is approved in one thing."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Any

import pytest
from cryptography import x509

from agent.stockyard_agent import certificates as agent_certificates
from agent.stockyard_agent.signing_request import parse
from agent.stockyard_agent.transport import Exchange, HttpRequest, HttpResponse, Unreachable
from local.kubernetes import certificates
from local.kubernetes.api import Fault, node
from local.kubernetes.certificates import CLIENT, SERVING, CertificateRequest
from local.kubernetes.store import Key, Object
from tests.unit.agent.rig import SERVICE, TOKEN, Rig
from tests.unit.agent.story import Killed

JOIN, NODE = "system:bootstrappers:stockyard:join", "system:bootstrappers:stockyard:node:"
SERVES = ("digital signature", "server auth")


def requested(rig: Rig, user: str, groups: Sequence[str], wish: CertificateRequest) -> str:
    return certificates.request(rig.kube.store, user, frozenset(groups), wish)


def _is_address(name: str) -> bool:
    return name[0].isdigit() or ":" in name


def first(rig: Rig, wish: CertificateRequest, *groups: str) -> str:
    return requested(rig, "system:bootstrap:abcdef", groups or (JOIN, NODE + "worker-1"), wish)


def serving(rig: Rig, *names: str, user: str = "worker-1", **more: Any) -> str:
    """The request of a kubelet for what it serves with."""
    general = [x509.IPAddress(ip_address(n)) if _is_address(n) else x509.DNSName(n) for n in names]
    wish = CertificateRequest(**{"node": user, "signer": SERVING, "usages": SERVES, "names": general, **more})
    return requested(rig, f"system:node:{user}", ("system:nodes",), wish)


def decision(rig: Rig, name: str) -> tuple[str, str]:
    """Decision of the agent about a request: type and message of its one condition, or nothing."""
    rig.agent().look()
    document = rig.kube.store.get(Key("certificates.k8s.io", "certificatesigningrequests", "", name))
    conditions = (document.get("status") or {}).get("conditions") or [{"type": "", "message": ""}]
    assert len(conditions) == 1
    return conditions[0]["type"], conditions[0]["message"]


def with_addresses(rig: Rig, name: str, *addresses: str, provider: str = "aws:///us-east-1a/i-0abc") -> Object:
    document = rig.add_node(name, providerID=provider)
    kinds = ["InternalIP" if _is_address(a) else "InternalDNS" for a in addresses]
    document["status"]["addresses"] = [{"type": k, "address": a} for k, a in zip(kinds, addresses, strict=True)]
    return document


@pytest.mark.parametrize(
    "usages", [("digital signature", "client auth"), ("digital signature", "key encipherment", "client auth")]
)
def test_a_machine_gets_the_certificate_of_its_own_node(rig: Rig, usages: Sequence[str]) -> None:
    name = first(rig, CertificateRequest("worker-1", usages=usages))
    assert decision(rig, name) == ("Approved", "the token is for the node worker-1")
    assert decision(rig, name)[0] == "Approved", "it is decided once"
    assert rig.kube.register(name, node("worker-1")) is not None


def test_a_node_may_have_a_name_with_dots(rig: Rig) -> None:
    assert decision(rig, first(rig, CertificateRequest("worker.one"), JOIN, NODE + "worker:one"))[0] == "Approved"


@pytest.mark.parametrize(
    ("wish", "groups", "why"),
    [
        (CertificateRequest("worker-2"), (), "for the node worker-1, not for 'system:node:worker-2'"),
        (CertificateRequest("worker-1", organization="system:masters"), (), "of 'system:masters'"),
        (
            CertificateRequest("worker-1", usages=("digital signature", "client auth", "server auth")),
            (),
            "the usages are",
        ),
        (CertificateRequest("worker-1", usages=("client auth",)), (), "the usages are"),
        (
            CertificateRequest("worker-1", usages=("digital signature", "client auth", "client auth")),
            (),
            "the usages are",
        ),
        (CertificateRequest("worker-1", names=[x509.DNSName("worker-1")]), (), "no alternative names"),
        (CertificateRequest("worker-1", names=[x509.RFC822Name("a@example.test")]), (), "neither DNS name nor address"),
        (CertificateRequest("worker-1"), (JOIN,), "names no node, or more than one"),
        (
            CertificateRequest("worker-1"),
            (JOIN, NODE + "worker-1", NODE + "worker-2"),
            "names no node, or more than one",
        ),
    ],
)
def test_a_token_gives_nothing_else(rig: Rig, wish: CertificateRequest, groups: tuple[str, ...], why: str) -> None:
    kind, text = decision(rig, first(rig, wish, *groups))
    assert kind == "Denied"
    assert why in text


def test_requests_of_others_are_left_to_others(rig: Rig) -> None:
    kubeadm = ("system:bootstrappers:kubeadm:default-node-token",)
    renewal = requested(rig, "system:node:worker-1", ("system:nodes",), CertificateRequest("worker-1"))
    for name in (
        first(rig, CertificateRequest("worker-1"), *kubeadm),
        renewal,
        first(rig, CertificateRequest("a", signer="example.test/own")),
    ):
        assert decision(rig, name) == ("", "")


def test_a_node_serves_under_its_own_names_and_addresses(rig: Rig) -> None:
    with_addresses(rig, "worker-1", "10.0.1.2", "fd00::2", "ip-10-0-1-2.ec2.internal", "i-0abc.ec2.internal")
    own = ("worker-1", "10.0.1.2", "fd00::2", "ip-10-0-1-2.ec2.internal", "i-0abc.ec2.internal")
    kind, text = decision(rig, serving(rig, *own))
    assert kind == "Approved"
    assert all(name in text for name in own)


def test_a_node_that_is_not_there_yet_waits(rig: Rig) -> None:
    name = serving(rig, "worker-1", "10.0.1.2")
    assert decision(rig, name) == ("", "")
    with_addresses(rig, "worker-1", "10.0.1.2")
    assert decision(rig, name)[0] == "Approved"


@pytest.mark.parametrize(
    ("names", "more", "why"),
    [
        ((), {}, "names nothing"),
        (("10.0.1.9",), {}, "10.0.1.9 is no address of the node"),
        # What a kubelet may write into its own Node, and what is never a node's.
        ((SERVICE,), {}, f"{SERVICE} is no address of the node"),
        (("127.0.0.1",), {}, "127.0.0.1 is no address of the node"),
        (("169.254.169.254",), {}, "169.254.169.254 is no address of the node"),
        (("10.0.1.3",), {}, "the node worker-3 has one of these addresses too"),
        (("kubernetes.default.svc",), {}, "kubernetes.default.svc is no name of the node"),
        (("kubernetes",), {}, "kubernetes is no name of the node"),
        (("ip-10-0-1-9.ec2.internal",), {}, "is no name of the node"),
        (("worker-3",), {}, "worker-3 is no name of the node"),
        (("worker-1",), {"organization": "system:masters"}, "of 'system:masters'"),
        (("worker-1",), {"usages": ("digital signature", "client auth")}, "the usages are"),
        (("worker-1",), {"usages": (*SERVES, "client auth")}, "the usages are"),
        (("worker-1",), {"node": "worker-3"}, "the subject is 'system:node:worker-3'"),
        (("worker-1",), {"user": "../worker-1"}, "no name of a node"),
    ],
)
def test_a_node_serves_under_nothing_else(rig: Rig, names: tuple[str, ...], more: dict[str, Any], why: str) -> None:
    written = [name for name in (SERVICE, "127.0.0.1", "169.254.169.254", "10.0.1.3", "kubernetes.default.svc",
               "kubernetes", "ip-10-0-1-9.ec2.internal", "worker-3") if name in names]  # fmt: skip
    with_addresses(rig, "worker-1", "10.0.1.2", *written)
    with_addresses(rig, "worker-3", "10.0.1.3")
    kind, text = decision(rig, serving(rig, *names, **more))
    assert kind == "Denied"
    assert why in text


def test_only_nodes_ask_for_serving_certificates(rig: Rig) -> None:
    with_addresses(rig, "worker-1", "10.0.1.2")
    wish = CertificateRequest("worker-1", signer=SERVING, usages=SERVES, names=[x509.DNSName("worker-1")])
    for user, groups in (("system:bootstrap:abcdef", (JOIN, NODE + "worker-1")), ("system:node:worker-1", ())):
        assert decision(rig, requested(rig, user, groups, wish)) == (
            "Denied", "only a node asks for the certificate that it serves with",
        )  # fmt: skip


def test_a_request_that_cannot_be_decided_does_not_hold_up_others(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def surprised(request: object) -> Any:
        if parse(request).common_name.endswith("bad"):
            raise RuntimeError("never seen")
        return parse(request)

    monkeypatch.setattr(agent_certificates, "parse", surprised)
    bad = first(rig, CertificateRequest("bad"), JOIN, NODE + "bad")
    assert decision(rig, first(rig, CertificateRequest("worker-1")))[0] == "Approved"
    assert decision(rig, bad) == ("", "")
    assert any("cannot be decided: RuntimeError" in line for line in rig.logs)


def test_who_decides_first_is_right(rig: Rig) -> None:
    """Two agents at once, while one replaces the other: the second finds the request changed."""
    name = first(rig, CertificateRequest("worker-1"))
    second = rig.agent()

    def around(request: HttpRequest, deliver: Exchange) -> HttpResponse:
        if request.method == "PUT":
            rig.around = None
            second.look()
        return deliver(request)

    rig.around = around
    rig.agent().look()
    assert decision(rig, name)[0] == "Approved"
    puts = [call.status for call in rig.kube.calls if call.action.resource.endswith("/approval")]
    assert puts == [200, 409]
    assert not [line for line in rig.logs if "wait:" in line]


@pytest.mark.parametrize("mode", ["killed before", "killed after", "answer lost", "refused 429", "refused 500"])
@pytest.mark.parametrize("at", range(1, 7))
def test_an_agent_that_is_cut_off_anywhere_is_followed_by_the_same_end(rig: Rig, at: int, mode: str) -> None:
    """From the list of requests to the last approval: each call fails once, before or after it took effect."""
    with_addresses(rig, "worker-3", "10.0.1.3")
    names = (
        first(rig, CertificateRequest("worker-1")),
        first(rig, CertificateRequest("worker-2")),
        serving(rig, "10.0.1.3", user="worker-3"),
    )
    calls = 0

    def around(request: HttpRequest, deliver: Exchange) -> HttpResponse:
        nonlocal calls
        calls += 1
        if calls != at:
            return deliver(request)
        if mode.startswith("refused"):
            return HttpResponse(int(mode[-3:]), {}, b'{"kind": "Status", "message": "injected"}')
        if mode != "killed before":
            deliver(request)
        raise Unreachable("lost") if mode == "answer lost" else Killed

    rig.around = around
    try:
        rig.agent().look()
    except Killed:
        assert mode.startswith("killed")
    rig.agent().look()
    assert calls >= at
    assert [decision(rig, name)[0] for name in names] == ["Approved", "Denied", "Approved"]


def test_an_agent_without_the_rights_goes_on_with_its_rounds(rig: Rig) -> None:
    """Code travels by an upgrade, roles do not: an agent may be newer than its rights."""
    rig.kube.faults.append(Fault("list", "certificatesigningrequests", 403, times=9))
    rig.order_token()
    agent = rig.agent()
    for _ in range(3):
        agent.look()
        rig.rounds(agent, 1)
    assert rig.platform.results_by_id["cmd_t"]["status"] == "done"
    assert len([line for line in rig.logs if "Requests of certificates wait" in line]) == 1


def test_the_whole_way_of_a_machine(rig: Rig) -> None:
    rig.order_token()
    agent = rig.agent()
    rig.until_ended(agent)
    stranger = rig.kube.request_certificate(TOKEN, CertificateRequest("ip-10-0-0-5"))
    own = rig.kube.request_certificate(TOKEN, CertificateRequest("worker-1"))
    assert decision(rig, stranger)[0] == "Denied"
    assert rig.kube.register(own, node("worker-1")) is not None
    assert base64.b64decode(rig.token_secret()["data"]["auth-extra-groups"]).decode() == f"{JOIN},{NODE}worker-1"
    assert CLIENT == agent_certificates.CLIENT
