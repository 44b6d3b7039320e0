"""Certificates on a real control plane: a token's holder becomes the node of its claim and no other, a certificate is
renewed without us, and a kubelet serves under its own names. The controllers issue, the agent approves."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from local.kubernetes.certificates import CLIENT, SERVING
from local.kubernetes.real.control_plane import PORT
from local.kubernetes.store import stamp
from tests.kubernetes.rigs import RealRig, until
from tests.unit.agent.rig import TOKEN
from tests.unit.agent.story import Killed

PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
CLIENT_USAGES, SERVING_USAGES = ("digital signature", "client auth"), ("digital signature", "server auth")


class Machines:
    """Kubelets of machines that join. A caller is a bootstrap token, or the node whose certificate is there."""

    def __init__(self, rig: RealRig) -> None:
        self.rig, self.folder = rig, rig.plane.folder
        self._count = 0

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
        self._count += 1
        request = f"csr-{caller.partition('.')[0]}-{self._count}"
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
        done = self.kubectl(caller, "create", "-f", str(self.written(request, json.dumps(document).encode())))
        assert done.returncode == 0, done.stderr
        private = serialization.PrivateFormat.PKCS8
        plain = key.private_bytes(serialization.Encoding.PEM, private, serialization.NoEncryption())
        self.written(f"{request}.key", plain)
        return request

    def written(self, name: str, content: bytes) -> Path:
        path = self.folder / f"{name}.file"
        path.write_bytes(content)
        return path

    def kubectl(self, caller: str, *arguments: str) -> Any:
        """As the holder of a token, or with a node's certificate."""
        plane = self.rig.plane
        if "." in caller:
            return plane.kubectl(*arguments, token=caller, check=False)
        pem = str(self.folder / f"{caller}.pem")
        address = ["--server", plane.url, "--certificate-authority", str(self.folder / "pki/ca.crt")]
        identity = ["--client-certificate", pem, "--client-key", pem]
        return plane.kubectl(*arguments, "--kubeconfig=", *address, *identity, check=False)

    def patch_status(self, node: str, status: Any) -> None:
        """A kubelet writes the status of its own Node."""
        context = ssl.create_default_context(cafile=str(self.folder / "pki/ca.crt"))
        context.load_cert_chain(self.folder / f"{node}.pem")
        headers = {"Content-Type": "application/merge-patch+json"}
        connection = http.client.HTTPSConnection(self.rig.plane.address, PORT, timeout=10, context=context)
        try:
            body = json.dumps({"status": status})
            connection.request("PATCH", f"/api/v1/nodes/{node}/status", body=body, headers=headers)
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
        finally:
            connection.close()

    def state(self, request: str) -> Any:
        return json.loads(self.rig.plane.kubectl("get", "csr", request, "-o", "json").stdout).get("status") or {}

    def conditions(self, request: str) -> list[str]:
        return [condition["type"] for condition in self.state(request).get("conditions") or ()]

    def take(self, request: str, node: str) -> x509.Certificate:
        """The certificate that was issued; it is the node's from now on."""
        issued = base64.b64decode(until(lambda: self.state(request).get("certificate")))
        (self.folder / f"{node}.pem").write_bytes(issued + (self.folder / f"{request}.key.file").read_bytes())
        return x509.load_pem_x509_certificate(issued)

    def register(self, caller: str, name: str) -> Any:
        labels = {"stockyard.dev/claim": "ncl_1", "kubernetes.io/hostname": name}
        document = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
        return self.kubectl(caller, "create", "-f", str(self.written(name, json.dumps(document).encode())))


@pytest.fixture
def rig(real_rig: RealRig) -> RealRig:
    return real_rig


@pytest.fixture
def machines(rig: RealRig) -> Iterator[Machines]:
    rig.order_token()
    rig.until_ended(rig.agent())
    assert rig.platform.results_by_id["cmd_t"]["status"] == "done"
    yield Machines(rig)
    rig.plane.kubectl("delete", "csr", "--all")
    rig.plane.kubectl("delete", "node", "worker-1", "worker-3", "--ignore-not-found")


def test_a_machine_joins_by_its_token_and_renews_its_certificate(rig: RealRig, machines: Machines) -> None:
    # The token signer has put the token on the public document by which a machine knows the cluster.
    get_info = ("get", "configmap", "cluster-info", "-n", "kube-public", "-o", "json")
    until(lambda: "jws-kubeconfig-abcdef" in json.loads(rig.plane.kubectl(*get_info).stdout)["data"])
    # What kubeadm reads on the way, and what it may not.
    assert machines.kubectl(TOKEN, "get", "configmap", "kubeadm-config", "-n", "kube-system").returncode == 0
    assert "NotFound" in machines.kubectl(TOKEN, "get", "node", "worker-1").stderr
    assert "Forbidden" in machines.kubectl(TOKEN, "get", "secrets", "-n", "kube-system").stderr
    request, agent = machines.ask(TOKEN, "worker-1"), rig.agent()
    agent.look()
    agent.look()
    assert machines.conditions(request) == ["Approved"]
    subject = machines.take(request, "worker-1").subject.rfc4514_string()
    assert subject == "CN=system:node:worker-1,O=system:nodes"
    refused = machines.register("worker-1", "worker-2")
    assert "is not allowed to modify node" in refused.stderr, refused.stderr
    assert machines.register("worker-1", "worker-1").returncode == 0
    # A certificate that is there is renewed by Kubernetes itself, and by nobody under another name.
    renewal = machines.ask("worker-1", "worker-1")
    until(lambda: machines.conditions(renewal) == ["Approved"])
    with pytest.raises(AssertionError, match="can only create a node CSR with CN=system:node:worker-1"):
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
    assert machines.register("worker-1", "worker-1").returncode == 0
    listed = [
        {"type": "InternalIP", "address": "10.0.1.2"},
        # A kubelet may write into its own Node what it likes.
        {"type": "InternalIP", "address": "10.96.0.1"},
        {"type": "InternalDNS", "address": "kubernetes.default.svc"},
    ]
    machines.patch_status("worker-1", {"addresses": listed})

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
    headers = {"Authorization": f"Bearer {rig.account}", "Content-Type": "application/json"}
    for request, why in requests.items():
        document = json.loads(rig.plane.kubectl("get", "csr", request, "-o", "json").stdout)
        condition = {"type": "Approved", "status": "True", "reason": "Stolen", "message": "by the agent's token"}
        document["status"] = {"conditions": [condition]}
        answer = rig.send("PUT", f"{PATH}/{request}/approval", headers, json.dumps(document).encode())
        assert answer.status in (403, 422), answer.body
        assert why in answer.body.decode()
        # To deny is never refused.
        document["status"]["conditions"][0]["type"] = "Denied"
        answer = rig.send("PUT", f"{PATH}/{request}/approval", headers, json.dumps(document).encode())
        assert (answer.status == 200) is ("not permitted" not in why)
