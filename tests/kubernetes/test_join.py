"""Certificates on a real control plane: a token's holder becomes the node of its claim and no other, a certificate is
renewed without us, and a kubelet serves under its own names. The controllers issue, the agent approves."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from local.kubernetes.certificates import CLIENT, SERVING
from local.kubernetes.real.client import MERGE, Client, Refused, certified
from local.kubernetes.store import stamp
from stockyard.machines.on_machine import stockyard_near
from tests.kubernetes.rigs import RealRig, until
from tests.unit.agent.rig import TOKEN
from tests.unit.agent.story import Killed

PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
CLIENT_USAGES, SERVING_USAGES = ("digital signature", "client auth"), ("digital signature", "server auth")


class Machines:
    """Kubelets of machines that join. A caller is a bootstrap token, or the node whose certificate is there."""

    def __init__(self, rig: RealRig) -> None:
        self.rig = rig
        self._keys: dict[str, bytes] = {}
        self._certificates: dict[str, tuple[bytes, bytes]] = {}

    def ask(
        self,
        caller: str,
        name: str,
        *,
        organization: str = "system:nodes",
        usages: Sequence[str] = CLIENT_USAGES,
        signer: str = CLIENT,
        names: Sequence[str] = (),
    ) -> str:
        """Send a request; its name. Its key is kept for ``take``."""
        request = f"csr-{len(self._keys)}"
        key = ec.generate_private_key(ec.SECP256R1())
        pairs = ((NameOID.ORGANIZATION_NAME, organization), (NameOID.COMMON_NAME, f"system:node:{name}"))
        subject = x509.Name([x509.NameAttribute(kind, value) for kind, value in pairs])
        builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
        if names:
            general = [x509.IPAddress(ip_address(n)) if n[0].isdigit() else x509.DNSName(n) for n in names]
            builder = builder.add_extension(x509.SubjectAlternativeName(general), critical=False)
        pem = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        document = {
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "CertificateSigningRequest",
            "metadata": {"name": request},
            "spec": {"request": base64.b64encode(pem).decode(), "signerName": signer, "usages": list(usages)},
        }
        self.client(caller).call("POST", PATH, document)
        private = serialization.PrivateFormat.PKCS8
        self._keys[request] = key.private_bytes(serialization.Encoding.PEM, private, serialization.NoEncryption())
        return request

    def client(self, caller: str) -> Client:
        """The holder of a token, or who has a node's certificate."""
        authority = (self.rig.plane.folder / "pki/ca.crt").read_text()
        if caller in self._certificates:
            path = self.rig.plane.folder / f"{caller}.pem"
            return Client(self.rig.plane.url, certified(path, authority, *self._certificates[caller]))
        return Client(self.rig.plane.url, ssl.create_default_context(cadata=authority), caller)

    def state(self, request: str) -> Any:
        return self.rig.administer("GET", f"{PATH}/{request}").get("status") or {}

    def conditions(self, request: str) -> list[str]:
        return [condition["type"] for condition in self.state(request).get("conditions") or ()]

    def take(self, request: str, node: str) -> x509.Certificate:
        """The certificate that was issued; it is the node's from now on."""
        issued = base64.b64decode(until(lambda: self.state(request).get("certificate")))
        self._certificates[node] = issued, self._keys[request]
        return x509.load_pem_x509_certificate(issued)

    def register(self, caller: str, name: str) -> None:
        labels = {"stockyard.dev/claim": "ncl_1", "kubernetes.io/hostname": name}
        document = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
        self.client(caller).call("POST", "/api/v1/nodes", document)


@pytest.fixture
def rig(real_rig: RealRig) -> RealRig:
    return real_rig


@pytest.fixture
def machines(rig: RealRig) -> Iterator[Machines]:
    rig.order_token()
    rig.until_ended(rig.agent())
    assert rig.platform.results_by_id["cmd_t"]["status"] == "done"
    yield Machines(rig)
    for item in rig.administer("GET", PATH)["items"]:
        rig.administer("DELETE", f"{PATH}/{item['metadata']['name']}")


def labels_itself(rig: RealRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kubelet of worker-1 may say on its own Node, and on no other, that its machine ends."""
    folder, url = rig.plane.folder, urlsplit(rig.plane.url)
    endpoint = {"host": url.hostname, "port": url.port, "node_name": "worker-1"}
    paths = {"AUTHORITY": "pki/ca.crt", "KUBELET": "worker-1.pem", "ENDPOINT": "endpoint.json"}
    for name, path in paths.items():
        monkeypatch.setattr(stockyard_near, name, str(folder / path))
    for name, is_taken in (("worker-1", True), ("worker-2", False)):
        (folder / "endpoint.json").write_text(json.dumps({**endpoint, "node_name": name}))
        assert stockyard_near.label("announced") is is_taken
    labels = rig.administer("GET", "/api/v1/nodes/worker-1")["metadata"]["labels"]
    assert labels[stockyard_near.INTERRUPTION] == "announced"


def test_a_machine_joins_by_its_token_and_renews_its_certificate(
    rig: RealRig, machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The token signer has put the token on the public document by which a machine knows the cluster.
    public, own = "/api/v1/namespaces/kube-public/configmaps", "/api/v1/namespaces/kube-system"
    until(lambda: "jws-kubeconfig-abcdef" in rig.administer("GET", f"{public}/cluster-info")["data"])
    # What kubeadm reads on the way, and what it may not.
    holder = machines.client(TOKEN)
    assert holder.call("GET", f"{own}/configmaps/kubeadm-config")["data"]
    for path, status in (("/api/v1/nodes/worker-1", 404), (f"{own}/secrets", 403), ("/api/v1/nodes", 403)):
        with pytest.raises(Refused, match=str(status)):
            holder.call("GET", path)
    request, agent = machines.ask(TOKEN, "worker-1"), rig.agent()
    agent.look()
    agent.look()
    assert machines.conditions(request) == ["Approved"]
    subject = machines.take(request, "worker-1").subject.rfc4514_string()
    assert subject == "CN=system:node:worker-1,O=system:nodes"
    with pytest.raises(Refused, match="is not allowed to modify node"):
        machines.register("worker-1", "worker-2")
    machines.register("worker-1", "worker-1")
    labels_itself(rig, monkeypatch)
    # A certificate that is there is renewed by Kubernetes itself, and by nobody under another name.
    renewal = machines.ask("worker-1", "worker-1")
    until(lambda: machines.conditions(renewal) == ["Approved"])
    with pytest.raises(Refused, match="can only create a node CSR with CN=system:node:worker-1"):
        machines.ask("worker-1", "worker-2")
    rig.rounds(agent, 1)
    assert "worker-1" in [item["name"] for item in rig.platform.posts[-1]["nodes"]]
    rig.platform.order("r", "remove_token", token_id="abcdef")
    rig.until_ended(agent)
    # The API server remembers for some seconds that a token was good.
    until(lambda: rig.send("GET", "/api/v1/nodes", {"Authorization": f"Bearer {TOKEN}"}).status == 401)


def test_a_token_gives_the_certificate_of_no_other_node(rig: RealRig, machines: Machines) -> None:
    """Nor of another organization, nor one for more than a kubelet's client does."""
    requests = {
        machines.ask(TOKEN, "ip-10-0-0-5"): "the token is for the node worker-1",
        machines.ask(TOKEN, "worker-1", organization="system:masters"): "'system:masters'",
        machines.ask(TOKEN, "worker-1", usages=(*CLIENT_USAGES, "server auth")): "the usages are",
        machines.ask(TOKEN, "worker-1", names=["worker-1"]): "no alternative names",
    }
    rig.agent().look()
    for request, why in requests.items():
        (condition,) = machines.state(request)["conditions"]
        assert (condition["type"], condition["reason"]) == ("Denied", "StockyardDenied")
        assert why in condition["message"]
        assert "certificate" not in machines.state(request)


def test_a_token_of_kubeadm_itself_is_approved_by_nobody(rig: RealRig, machines: Machines) -> None:
    expires = stamp(datetime.now(UTC) + timedelta(minutes=15))
    token = {
        "token-id": "kubead", "token-secret": "0123456789abcdef", "expiration": expires,
        "usage-bootstrap-authentication": "true", "usage-bootstrap-signing": "true",
        "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
    }  # fmt: skip
    meta = {"name": "bootstrap-token-kubead", "namespace": "kube-system"}
    kind = "bootstrap.kubernetes.io/token"
    rig.apply({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": kind, "stringData": token})
    request = machines.ask("kubead.0123456789abcdef", "ip-10-0-0-5")
    later = machines.ask(TOKEN, "worker-1")
    rig.agent().look()
    # When the controllers have issued the later one, they have looked at the earlier.
    until(lambda: machines.state(later).get("certificate"))
    assert machines.state(request) == {}


@pytest.mark.parametrize("mode", ["killed before", "killed after"])
def test_an_agent_that_ends_in_between_is_followed_by_the_next(rig: RealRig, machines: Machines, mode: str) -> None:
    requests = [machines.ask(TOKEN, name) for name in ("worker-1", "worker-2", "worker-1")]

    def around(request: Any, deliver: Any) -> Any:
        if request.method != "PUT":
            return deliver(request)
        rig.around = None
        if mode == "killed after":
            deliver(request)
        raise Killed

    rig.around = around
    with pytest.raises(Killed):
        rig.agent().look()
    rig.agent().look()
    assert [machines.conditions(request) for request in requests] == [["Approved"], ["Denied"], ["Approved"]]


def test_a_kubelet_serves_under_its_own_names(rig: RealRig, machines: Machines) -> None:
    request, agent = machines.ask(TOKEN, "worker-1"), rig.agent()
    agent.look()
    machines.take(request, "worker-1")
    machines.register("worker-1", "worker-1")
    listed = [
        {"type": "InternalIP", "address": "10.0.1.2"},
        # A kubelet may write into its own Node what it likes.
        {"type": "InternalIP", "address": "10.96.0.1"},
        {"type": "InternalDNS", "address": "kubernetes.default.svc"},
    ]
    status = {"status": {"addresses": listed}}
    machines.client("worker-1").call("PATCH", "/api/v1/nodes/worker-1/status", status, MERGE)

    def serves(*names: str) -> str:
        return machines.ask("worker-1", "worker-1", usages=SERVING_USAGES, signer=SERVING, names=names)

    good, service, api = serves("worker-1", "10.0.1.2"), serves("10.96.0.1"), serves("kubernetes.default.svc")
    agent.look()
    assert [machines.conditions(name) for name in (good, service, api)] == [["Approved"], ["Denied"], ["Denied"]]
    issued = machines.take(good, "serving")
    names = issued.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["worker-1"]


def test_the_admission_policy_holds_the_agent_to_requests_of_its_own_tokens(rig: RealRig, machines: Machines) -> None:
    """Whoever has the agent's token cannot approve what no machine of ours has asked for."""
    rig.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "visitor", "namespace": "kube-system"}}
    )
    rule = {"apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests"], "verbs": ["create"]}
    api, name = "rbac.authorization.k8s.io", {"name": "visitor"}
    subject = {"kind": "ServiceAccount", "name": "visitor", "namespace": "kube-system"}
    role = {"apiGroup": api, "kind": "ClusterRole", "name": "visitor"}
    rig.apply({"apiVersion": f"{api}/v1", "kind": "ClusterRole", "metadata": name, "rules": [rule]})
    binding = {"apiVersion": f"{api}/v1", "kind": "ClusterRoleBinding", "metadata": name, "roleRef": role}
    rig.apply({**binding, "subjects": [subject]})
    visitor = rig.plane.kubectl("create", "token", "visitor", "-n", "kube-system").stdout.strip()
    odd = (*CLIENT_USAGES, "code signing")
    requests = {
        machines.ask(visitor, "ip-10-0-0-5"): "first certificates for its own tokens only",
        machines.ask(visitor, "ip-10-0-0-5", usages=SERVING_USAGES, signer=SERVING): "for nodes only",
        machines.ask(TOKEN, "worker-1", usages=odd): "the usages of kubelets only",
        machines.ask(visitor, "x", usages=odd, signer="example.test/other"): "not permitted to approve",
    }
    for request, why in requests.items():
        document = rig.administer("GET", f"{PATH}/{request}")
        condition = {"type": "Approved", "status": "True", "reason": "Stolen", "message": "by the agent's token"}
        document["status"] = {"conditions": [condition]}
        answer = rig.call("PUT", f"{PATH}/{request}/approval", document)
        assert answer.status in (403, 422), answer.body
        assert why in answer.body.decode()
        # To deny is refused for a signer of others alone.
        condition["type"] = "Denied"
        answer = rig.call("PUT", f"{PATH}/{request}/approval", document)
        assert (answer.status == 200) is ("not permitted" not in why)
