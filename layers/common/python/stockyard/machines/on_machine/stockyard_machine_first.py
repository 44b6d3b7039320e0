"""The part of the machine that begins a control plane: it stands below ``stockyard_machine_member`` in one file.

kubeadm's configuration, the agent and the report. What it imports of this package stands above it there.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import urllib.parse
from typing import Any

from stockyard.machines.on_machine.stockyard_machine import (
    API_FOLDER,
    CONFIG,
    DATA,
    KUBERNETES,
    STATE,
    USER_PREFIX,
    address,
    boot_step,
    enter_overlay,
    fetch,
    overlay_request,
    patiently,
    provider_id,
    save,
)
from stockyard.machines.on_machine.stockyard_machine_member import api_server, backup, post, prove, url


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


def kubeadm(machine: dict[str, str], client: dict[str, Any], provider: str, overlay: str = "") -> list[dict[str, Any]]:
    """kubeadm's configuration documents: the endpoint that never changes, people by the realm's tokens.

    ``provider``: the machine's id in its cloud, ``overlay``: its address in the cluster's overlay, empty for none.
    """
    host, port = address(inside(client))
    names = [host, address(client["endpoint"])[0], *client.get("certificate_names", [])]
    api = "kubeadm.k8s.io/v1beta4"
    kubelet = {"provider-id": provider} if provider else {}
    if machine.get("cloud_provider"):
        kubelet["cloud-provider"] = "external"
    if overlay:
        kubelet["node-ip"] = overlay
    sealed = {"certificateKey": client["certificate_key"]} if client.get("certificate_key") else {}
    return [
        {
            "apiVersion": api,
            "kind": "InitConfiguration",
            **sealed,
            **({"localAPIEndpoint": {"advertiseAddress": overlay}} if overlay else {}),
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
    request = overlay_request()
    # The address in an overlay is of the key that this machine has made, not of the one before it.
    if os.path.exists(os.path.join(STATE, "client.json")) and not request:
        client = credentials()
        if "certificate_key" not in client:
            client["certificate_key"] = sealing_key(machine)
    else:
        client = patiently(lambda: json.loads(post(machine, "bootstrap", {**prove(machine), **request})))
    host, port = address(inside(client))
    save("endpoint.json", json.dumps({"host": host, "port": port}) + "\n")
    overlay = enter_overlay(client)
    save("client.json", json.dumps(client))
    save("endpoint", address(inside(client))[0] + "\n")
    if machine["creator"]:
        save("administrator.json", json.dumps(administrator(machine["creator"])))
    api_server(machine, client.get("certificate_key", ""))
    configuration = kubeadm(machine, client, "" if "token" in machine else patiently(provider_id), overlay)
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
    index = next(i for i, document in enumerate(manifest["items"]) if document["kind"] == "Namespace")
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "stockyard-agent", "namespace": manifest["items"][index]["metadata"]["name"]},
        "data": {name: base64.b64encode(client[name].encode()).decode() for name in ("client_id", "client_secret")},
    }
    manifest["items"].insert(index + 1, secret)
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
