"""Runs on a machine and proves which one it is; on a control plane also kubeadm's configuration, agent, report.

Standard library only, because it runs before anything else is installed. It is written to the machine by cloud-init;
its values come from ``machine.json``, which holds no secret.
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


def presign(keys: dict[str, str], region: str, host: str, moment: datetime) -> dict[str, Any]:
    """A presigned ``sts:GetCallerIdentity`` whose signature covers the name of the host it is meant for."""
    stamp = moment.strftime("%Y%m%dT%H%M%SZ")
    scope = "/".join([stamp[:8], region, "sts", "aws4_request"])
    sts = "sts." + region + ".amazonaws.com"
    query = {
        "Action": "GetCallerIdentity",
        "Version": "2011-06-15",
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": keys["AccessKeyId"] + "/" + scope,
        "X-Amz-Date": stamp,
        "X-Amz-Expires": "300",
        "X-Amz-SignedHeaders": "host;" + HOST_HEADER,
        "X-Amz-Security-Token": keys["Token"],
    }
    quoted = "&".join(k + "=" + urllib.parse.quote(v, safe="-_.~") for k, v in sorted(query.items()))
    signed = "host:" + sts + "\n" + HOST_HEADER + ":" + host + "\n"
    nothing = hashlib.sha256(b"").hexdigest()
    canonical = "\n".join(["GET", "/", quoted, signed, "host;" + HOST_HEADER, nothing])
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + keys["SecretAccessKey"]).encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    url = "https://" + sts + "/?" + quoted + "&X-Amz-Signature=" + signature
    return {"method": "GET", "url": url, "headers": {HOST_HEADER: host}}


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


# --- a control plane's own part: other machines are given what stands above ---


def kubeadm(machine: dict[str, str], endpoint: str) -> list[dict[str, Any]]:
    """kubeadm's configuration documents: the load balancer's name as endpoint, people by OIDC of the realm."""
    host, port = address(endpoint)
    api = "kubeadm.k8s.io/v1beta4"
    flags = {
        "oidc-issuer-url": machine["issuer"],
        "oidc-client-id": machine["audience"],
        "oidc-username-claim": "preferred_username",
        "oidc-username-prefix": USER_PREFIX,
        "oidc-groups-claim": "groups",
        "oidc-groups-prefix": USER_PREFIX,
    }
    return [
        {
            "apiVersion": api,
            "kind": "InitConfiguration",
            "nodeRegistration": {"criSocket": "unix:///run/containerd/containerd.sock"},
        },
        {
            "apiVersion": api,
            "kind": "ClusterConfiguration",
            "clusterName": machine["client_id"],
            "kubernetesVersion": "stable-" + machine["kubernetes_version"],
            "controlPlaneEndpoint": f"{host}:{port}",
            "networking": {"podSubnet": machine["pod_cidr"]},
            # Of /16, 512 nodes with room for the 110 pods of each; the default is 256 of twice the size.
            "controllerManager": {"extraArgs": [{"name": "node-cidr-mask-size", "value": "25"}]},
            "apiServer": {
                "certSANs": [host],
                "extraArgs": [{"name": name, "value": value} for name, value in flags.items()],
            },
        },
        {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "cgroupDriver": "systemd"},
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


def url(machine: dict[str, str], action: str) -> str:
    """One of the cluster's routes at Stockyard."""
    return f"{machine['api_url']}/v1/clusters/{machine['cluster_id']}/{action}"


def bootstrap(machine: dict[str, str]) -> None:
    """Prove who we are, keep the client's credentials, and write kubeadm's configuration."""
    if os.path.exists(os.path.join(STATE, "kubeadm.yaml")):
        return
    host = urllib.parse.urlsplit(machine["api_url"]).netloc

    def prove() -> Any:
        region, keys = instance()
        proof = presign(keys, region, host, datetime.now(timezone.utc))  # noqa: UP017
        body = json.dumps(proof).encode()
        return json.loads(fetch("POST", url(machine, "bootstrap"), {"Content-Type": "application/json"}, body))

    client = patiently(prove)
    save("client.json", json.dumps(client))
    save("endpoint", address(client["endpoint"])[0] + "\n")
    if machine["creator"]:
        save("administrator.json", json.dumps(administrator(machine["creator"])))
    documents = [json.dumps(document, indent=1) for document in kubeadm(machine, client["endpoint"])]
    save("kubeadm.yaml", "\n---\n".join(documents) + "\n")


def credentials() -> dict[str, str]:
    """The cluster's own client, as ``bootstrap`` kept it."""
    with open(os.path.join(STATE, "client.json")) as file:
        client: dict[str, str] = json.load(file)
    return client


def bearer(client: dict[str, str]) -> dict[str, str]:
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
    """Post kubeconfig and certificate authority with a token of the cluster's own client."""
    client = credentials()
    with open(os.path.join(KUBERNETES, "admin.conf")) as file:
        kubeconfig = file.read()
    with open(os.path.join(KUBERNETES, "pki", "ca.crt")) as file:
        authority = base64.b64encode(file.read().encode()).decode()

    def report() -> None:
        headers = {"Content-Type": "application/json", **bearer(client)}
        body = json.dumps({"kubeconfig": kubeconfig, "certificate_authority": authority}).encode()
        fetch("POST", url(machine, "ready"), headers, body)

    patiently(report)


def main(arguments: list[str]) -> None:
    """``bootstrap``, ``agent`` or ``ready``."""
    with open(CONFIG) as file:
        machine = json.load(file)
    {"bootstrap": bootstrap, "agent": agent, "ready": ready}[arguments[0]](machine)


if __name__ == "__main__":
    main(sys.argv[1:])
