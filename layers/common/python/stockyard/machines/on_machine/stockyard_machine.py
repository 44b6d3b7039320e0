"""Runs on a machine and proves which one it is; on a control plane also kubeadm's configuration, agent, report.

Standard library only, because it runs before anything else is installed. It is written to the machine at its first
boot; its values come from ``machine.json``, whose only secret is the token of a machine without keys of its cloud.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

CONFIG = os.environ.get("STOCKYARD_CONFIG", "/etc/stockyard/machine.json")
STATE = os.environ.get("STOCKYARD_STATE", "/etc/stockyard")
METADATA = os.environ.get("STOCKYARD_METADATA", "http://169.254.169.254")
KUBERNETES = os.environ.get("STOCKYARD_KUBERNETES", "/etc/kubernetes")
ATTEMPTS = 40
HOST_HEADER = "x-stockyard-host"
USER_PREFIX = "oidc:"
API_FOLDER = "api"
DATA = "/var/lib/control-plane/etcd"


def fetch(method: str, url: str, headers: dict[str, str] | None = None, body: bytes | None = None) -> str:
    """The text of an answer. Raises ``OSError`` (``URLError``) for anything but 2xx."""
    request = urllib.request.Request(url, data=body, headers=headers or {}, method=method)  # noqa: S310
    with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
        return str(answer.read().decode())


def patiently(step: Callable[[], Any], attempts: int = ATTEMPTS, pause: Callable[[float], None] = time.sleep) -> Any:
    """Call ``step`` until it answers: the role, the record or the network may not be there yet."""
    for attempt in range(attempts - 1):
        try:
            return step()
        except (OSError, ValueError, KeyError) as error:
            name, code = type(error).__name__, getattr(error, "code", "")
            sys.stderr.write(f"attempt {attempt + 1} failed: {name} {code}\n")
        pause(min(30, 2 + attempt))
    return step()


def instance() -> tuple[str, dict[str, str]]:
    """Region and temporary keys of the instance's role, by IMDSv2."""
    ttl = {"X-aws-ec2-metadata-token-ttl-seconds": "300"}
    token = {"X-aws-ec2-metadata-token": fetch("PUT", METADATA + "/latest/api/token", ttl)}
    root = METADATA + "/latest/meta-data/"
    region = fetch("GET", root + "placement/region", token).strip()
    role = fetch("GET", root + "iam/security-credentials/", token).split()[0]
    return region, json.loads(fetch("GET", root + "iam/security-credentials/" + role, token))


def provider_id() -> str:
    """Provider id, by which cloud controllers know the machine: ``aws:///{zone}/{instance}``. It cannot be given to a
    node later."""
    ttl = {"X-aws-ec2-metadata-token-ttl-seconds": "300"}
    token = {"X-aws-ec2-metadata-token": fetch("PUT", METADATA + "/latest/api/token", ttl)}
    root = METADATA + "/latest/meta-data/"
    zone = fetch("GET", root + "placement/availability-zone", token).strip()
    return "aws:///" + zone + "/" + fetch("GET", root + "instance-id", token).strip()


def signed_url(
    keys: dict[str, str], region: str, service: str, request: tuple[str, str, str, str], query: dict[str, str],
    headers: dict[str, str], moment: datetime,
) -> str:  # fmt: skip
    """A URL that is signed for five minutes. ``request``: method, host, path, and the digest of what is sent.
    ``headers`` have to come with it, in small letters."""
    method, host, path, payload = request
    stamp = moment.strftime("%Y%m%dT%H%M%SZ")
    scope = "/".join([stamp[:8], region, service, "aws4_request"])
    sent = sorted({**headers, "host": host}.items())
    names = ";".join(name for name, _ in sent)
    query = {
        **query,
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": keys["AccessKeyId"] + "/" + scope,
        "X-Amz-Date": stamp,
        "X-Amz-Expires": "300",
        "X-Amz-SignedHeaders": names,
        "X-Amz-Security-Token": keys["Token"],
    }
    quoted = "&".join(k + "=" + urllib.parse.quote(v, safe="-_.~") for k, v in sorted(query.items()))
    lines = "".join(name + ":" + value + "\n" for name, value in sent)
    canonical = "\n".join([method, path, quoted, lines, names, payload])
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + keys["SecretAccessKey"]).encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    return "https://" + host + path + "?" + quoted + "&X-Amz-Signature=" + signature


def presign(keys: dict[str, str], region: str, host: str, moment: datetime) -> dict[str, Any]:
    """A presigned ``sts:GetCallerIdentity`` whose signature covers the name of the host it is meant for."""
    request = ("GET", "sts." + region + ".amazonaws.com", "/", hashlib.sha256(b"").hexdigest())
    query, headers = {"Action": "GetCallerIdentity", "Version": "2011-06-15"}, {HOST_HEADER: host}
    url = signed_url(keys, region, "sts", request, query, headers, moment)
    return {"method": "GET", "url": url, "headers": headers}


def address(endpoint: str) -> tuple[str, int]:
    """Host and port of an endpoint, which may or may not be a URL."""
    parts = urllib.parse.urlsplit(endpoint if "//" in endpoint else "//" + endpoint)
    return parts.hostname or "", parts.port or 6443


def save(name: str, text: str) -> None:
    """Write a file that only root can read."""
    path = os.path.join(STATE, name)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)


def boot_step(arguments: list[str]) -> dict[str, Any]:
    """A step that begins; with its exit code and the path of the log, one that has failed and its last lines."""
    step: dict[str, Any] = {"step": arguments[0]}
    if len(arguments) > 1:
        with open(arguments[2], errors="replace") as file:
            step.update(exit=int(arguments[1]), lines=file.read()[-4000:])
    return step


# --- a control plane's own part: other machines are given what stands above ---


# What probes ask, and by what a machine that joins knows the cluster. Nothing else answers who shows no credentials.
ANONYMOUS = ["/livez", "/readyz", "/api/v1/namespaces/kube-public/configmaps/cluster-info"]


def authentication(machine: dict[str, str]) -> dict[str, Any]:
    """Rules of authentication: people of the realm whose token is for the cluster's own login and names the cluster's
    tenant.

    Keycloak writes ``organization`` as a list of names or as a map by name; one name alone may be a text.
    """
    claim, tenant = "claims.organization", json.dumps(machine["tenant"])
    return {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthenticationConfiguration",
        "anonymous": {"enabled": True, "conditions": [{"path": path} for path in ANONYMOUS]},
        "jwt": [
            {
                "issuer": {"url": machine["issuer"], "audiences": [machine["client_id"] + "-login"]},
                "claimValidationRules": [
                    {
                        "expression": f"has({claim}) && (type({claim}) == string ? "
                        f"{claim} == {tenant} : {tenant} in {claim})"
                    }
                ],
                "claimMappings": {
                    "username": {"claim": "preferred_username", "prefix": USER_PREFIX},
                    "groups": {"claim": "groups", "prefix": USER_PREFIX},
                },
            }
        ],
    }


def encryption(certificate_key: str, old: list[dict[str, str]]) -> dict[str, Any]:
    """Encryption of Secrets in etcd: with a key that all members of a control plane derive alike.

    ``old`` keys still open what they have sealed. A cluster without a certificate key has one of its own.
    """
    keys = []
    if certificate_key:
        derived = hmac.new(bytes.fromhex(certificate_key), b"secrets", hashlib.sha256).digest()
        keys.append({"name": "shared", "secret": base64.b64encode(derived).decode()})
    keys += [key for key in old if key not in keys]
    if not keys:
        keys.append({"name": "first", "secret": base64.b64encode(os.urandom(32)).decode()})
    return {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [{"resources": ["secrets"], "providers": [{"secretbox": {"keys": keys}}, {"identity": {}}]}],
    }


AUDIT = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    # Never bodies: they would bring Secrets and tokens into the log.
    "rules": [
        {"level": "None", "nonResourceURLs": ["/healthz*", "/livez*", "/readyz*", "/version"]},
        {"level": "None", "userGroups": ["system:nodes"], "verbs": ["get", "list", "watch"]},
        {"level": "None", "verbs": ["watch"]},
        {"level": "Metadata"},
    ],
}


def api_server(machine: dict[str, str], certificate_key: str = "") -> None:
    """Write the files that the API server reads. The keys of Secrets stay: what they have sealed needs them."""
    os.makedirs(os.path.join(STATE, API_FOLDER), mode=0o700, exist_ok=True)
    old = []
    if os.path.exists(os.path.join(STATE, API_FOLDER, "encryption.yaml")):
        with open(os.path.join(STATE, API_FOLDER, "encryption.yaml")) as file:
            old = json.load(file)["resources"][0]["providers"][0]["secretbox"]["keys"]
    sealing = encryption(certificate_key, old)
    for name, document in (("authentication", authentication(machine)), ("audit", AUDIT), ("encryption", sealing)):
        save(f"{API_FOLDER}/{name}.yaml", json.dumps(document, indent=1) + "\n")


def url(machine: dict[str, str], action: str) -> str:
    """One of the cluster's routes at Stockyard."""
    return f"{machine['api_url']}/v1/clusters/{machine['cluster_id']}/{action}"


def prove(machine: dict[str, str]) -> dict[str, Any]:
    """Proof of this machine's identity: its token, or the request that it signs, to Stockyard alone."""
    if "token" in machine:
        return {"token": machine["token"]}
    region, keys = instance()
    host = urllib.parse.urlsplit(machine["api_url"]).netloc
    return presign(keys, region, host, datetime.now(timezone.utc))  # noqa: UP017


def post(machine: dict[str, str], action: str, body: dict[str, Any], headers: dict[str, str] | None = None) -> str:
    """Send JSON to one of the cluster's routes."""
    sent = {"Content-Type": "application/json", **(headers or {})}
    return fetch("POST", url(machine, action), sent, json.dumps(body).encode())


def install(programs: dict[str, str]) -> None:
    """Write programs that user data had no room for."""
    for name, text in programs.items():
        save(name, text)


def backup(machine: dict[str, str]) -> None:
    """Ask whether a snapshot of etcd is due, and become the program that takes it."""
    due = json.loads(post(machine, "snapshot-reports", prove(machine)))["due"]
    if due is not None:
        install(due.pop("programs"))
        save("snapshot.json", json.dumps({**due, "machine": machine}))
        os.execv(sys.executable, [sys.executable, os.path.join(STATE, "stockyard_snapshot.py")])  # noqa: S606


# --- the first member's own part: members after it are given what stands above ---


def api_server_arguments() -> dict[str, Any]:
    """Arguments with which kubeadm starts the API server: the files of ``api_server``, and where its audit log goes."""
    files, log = "/etc/stockyard/" + API_FOLDER, "/var/log/kubernetes/audit"
    flags = {
        "authentication-config": files + "/authentication.yaml",
        "encryption-provider-config": files + "/encryption.yaml",
        "audit-policy-file": files + "/audit.yaml",
        "audit-log-path": log + "/audit.log",
        "audit-log-maxage": "30",
        "audit-log-maxbackup": "5",
        "audit-log-maxsize": "100",
    }
    volumes = [
        {"name": "stockyard", "hostPath": files, "mountPath": files, "readOnly": True, "pathType": "Directory"},
        {"name": "audit", "hostPath": log, "mountPath": log, "pathType": "DirectoryOrCreate"},
    ]
    return {
        "extraArgs": [{"name": name, "value": value} for name, value in flags.items()],
        "extraVolumes": volumes,
    }


def kubeadm(machine: dict[str, str], client: dict[str, Any], provider: str) -> list[dict[str, Any]]:
    """kubeadm's configuration documents: the endpoint that never changes, people by the realm's tokens.

    ``provider``: the machine's id in its cloud, empty for none.
    """
    host, port = address(inside(client))
    names = [host, address(client["endpoint"])[0], *client.get("certificate_names", [])]
    api = "kubeadm.k8s.io/v1beta4"
    kubelet = {"provider-id": provider} if provider else {}
    if machine.get("cloud_provider"):
        kubelet["cloud-provider"] = "external"
    sealed = {"certificateKey": client["certificate_key"]} if client.get("certificate_key") else {}
    return [
        {
            "apiVersion": api,
            "kind": "InitConfiguration",
            **sealed,
            "nodeRegistration": {
                "criSocket": "unix:///run/containerd/containerd.sock",
                "kubeletExtraArgs": [{"name": name, "value": value} for name, value in kubelet.items()],
                # Without the member kubeadm taints the node, so that no workloads come to it.
                **({"taints": []} if machine.get("workloads") else {}),
            },
        },
        {
            "apiVersion": api,
            "kind": "ClusterConfiguration",
            "clusterName": machine["client_id"],
            "kubernetesVersion": "v" + machine["kubernetes_version"],
            "controlPlaneEndpoint": f"{host}:{port}",
            "networking": {"podSubnet": machine["pod_cidr"]},
            # On the volume that outlives the machine.
            "etcd": {"local": {"dataDir": DATA}},
            # Of /16, 512 nodes with room for the 110 pods of each; the default is 256 of twice the size.
            "controllerManager": {"extraArgs": [{"name": "node-cidr-mask-size", "value": "25"}]},
            "apiServer": {"certSANs": list(dict.fromkeys(names)), **api_server_arguments()},
        },
        # Of all nodes. What a kubelet serves with is signed by the cluster's authority; the agent approves it.
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "cgroupDriver": "systemd",
            "serverTLSBootstrap": True,
        },
    ]


def administrator(creator: str) -> dict[str, Any]:
    """The binding that makes the creator the cluster's first administrator."""
    api = "rbac.authorization.k8s.io"
    return {
        "apiVersion": api + "/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "stockyard-creator"},
        "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": api, "kind": "User", "name": USER_PREFIX + creator}],
    }


def inside(client: dict[str, Any]) -> str:
    """The endpoint as the cluster's own machines know it."""
    return str(client.get("machine_endpoint") or client["endpoint"])


def bootstrap(machine: dict[str, str]) -> None:
    """Prove who we are, keep the client's credentials, and write kubeadm's configuration.

    A machine that goes on with the volume of another has the credentials of that one, and asks for the key of the
    authorities when they are older than that.
    """
    if os.path.exists(os.path.join(STATE, "kubeadm.yaml")):
        return
    if os.path.exists(os.path.join(STATE, "client.json")):
        client = credentials()
        if "certificate_key" not in client:
            client["certificate_key"] = sealing_key(machine)
    else:
        client = patiently(lambda: json.loads(post(machine, "bootstrap", prove(machine))))
    save("client.json", json.dumps(client))
    save("endpoint", address(inside(client))[0] + "\n")
    if machine["creator"]:
        save("administrator.json", json.dumps(administrator(machine["creator"])))
    api_server(machine, client.get("certificate_key", ""))
    configuration = kubeadm(machine, client, "" if "token" in machine else patiently(provider_id))
    documents = [json.dumps(document, indent=1) for document in configuration]
    save("kubeadm.yaml", "\n---\n".join(documents) + "\n")


def sealing_key(machine: dict[str, str]) -> str:
    """The key of the authorities; empty where nobody gives it to this machine, which goes on without members."""
    try:
        return str(json.loads(post(machine, "bootstrap", prove(machine)))["certificate_key"])
    except (OSError, ValueError, KeyError):
        return ""


def credentials() -> dict[str, Any]:
    """The cluster's own client, as ``bootstrap`` kept it."""
    with open(os.path.join(STATE, "client.json")) as file:
        client: dict[str, Any] = json.load(file)
    return client


def bearer(client: dict[str, Any]) -> dict[str, str]:
    """The header with a new token of the cluster's own client."""
    form = {"grant_type": "client_credentials"}
    form.update((name, client[name]) for name in ("client_id", "client_secret"))
    token = json.loads(fetch("POST", client["token_url"], {}, urllib.parse.urlencode(form).encode()))
    return {"Authorization": "Bearer " + token["access_token"]}


def agent(machine: dict[str, str]) -> None:
    """Write the agent's manifest, with the client's credentials as a Secret right after its namespace."""
    client = credentials()
    manifest = patiently(lambda: json.loads(fetch("GET", url(machine, "agent"), bearer(client))))
    place = next(i for i, document in enumerate(manifest["items"]) if document["kind"] == "Namespace")
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "stockyard-agent", "namespace": manifest["items"][place]["metadata"]["name"]},
        "data": {name: base64.b64encode(client[name].encode()).decode() for name in ("client_id", "client_secret")},
    }
    manifest["items"].insert(place + 1, secret)
    save("agent.json", json.dumps(manifest))


def ready(machine: dict[str, str]) -> None:
    """Post kubeconfig and certificate authority with a token of the cluster's own client, and the proof that makes a
    renewed kubeconfig count. It names the endpoint that everybody can reach."""
    client = credentials()
    with open(os.path.join(KUBERNETES, "admin.conf")) as file:
        kubeconfig = file.read().replace(server(inside(client)), server(client["endpoint"]))
    with open(os.path.join(KUBERNETES, "pki", "ca.crt")) as file:
        authority = base64.b64encode(file.read().encode()).decode()

    report = {"kubeconfig": kubeconfig, "certificate_authority": authority}
    later = {"token": client["renewal_token"]} if client.get("renewal_token") else None
    patiently(lambda: post(machine, "ready", {**report, "proof": later or prove(machine)}, bearer(client)))


def server(endpoint: str) -> str:
    """Write an endpoint as kubeconfigs do."""
    host, port = address(endpoint)
    return f"https://{host}:{port}"


def say(machine: dict[str, str], step: dict[str, Any]) -> None:
    """Tell Stockyard how the first boot goes, once: nothing depends on whether it is heard."""
    post(machine, "boot-reports", {**prove(machine), **step})


def main(arguments: list[str]) -> None:
    """``bootstrap``, ``agent``, ``backup``, ``ready``, or ``say`` and the arguments of ``boot_step``."""
    with open(CONFIG) as file:
        machine = json.load(file)
    if arguments[0] == "say":
        say(machine, boot_step(arguments[1:]))
    else:
        {"bootstrap": bootstrap, "agent": agent, "backup": backup, "ready": ready}[arguments[0]](machine)


if __name__ == "__main__":
    main(sys.argv[1:])
