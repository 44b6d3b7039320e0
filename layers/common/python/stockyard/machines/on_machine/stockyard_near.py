"""Runs on a node each minute: lets the name of the API endpoint lead to the control plane itself where that is near.

The load balancer's name leads out of the network and back in. A node that reaches the control plane's own address, and
meets the cluster's own certificate there, has the name in its hosts file; when the address is silent, it goes. Members
of the control plane come and go: the cluster itself says which there are. Standard library only. What else a node says
to its cluster itself is here too.
"""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import urllib.request
from typing import Any

ENDPOINT = os.environ.get("STOCKYARD_ENDPOINT", "/etc/stockyard/endpoint.json")
HOSTS = os.environ.get("STOCKYARD_HOSTS", "/etc/hosts")
AUTHORITY = os.environ.get("STOCKYARD_AUTHORITY", "/etc/kubernetes/pki/ca.crt")
KUBELET = os.environ.get("STOCKYARD_KUBELET", "/var/lib/kubelet/pki/kubelet-client-current.pem")
MEMBERS = "/api/v1/namespaces/default/endpoints/kubernetes"
SECONDS = 3
MARK = "# Stockyard: the API server, within the network"
# It has a copy of the hosts file of the moment when it was started.
INTERRUPTION = "stockyard.dev/interruption"
RESTART = "crictl --runtime-endpoint unix:///run/containerd/containerd.sock"
RESTART += " ps --quiet --name '^kube-proxy$' | xargs --no-run-if-empty crictl stop"


def answers(address: str, host: str, port: int) -> bool:
    """Whether an API server with the cluster's own certificate answers at the address."""
    try:
        context = ssl.create_default_context(cafile=AUTHORITY)
        with (
            socket.create_connection((address, port), SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=host),
        ):
            return True
    except (OSError, ValueError):
        return False


def addresses(document: dict[str, Any]) -> list[str]:
    """Addresses of API servers, by the object that they keep themselves."""
    subsets = document.get("subsets") or []
    return [address["ip"] for subset in subsets for address in subset.get("addresses") or []]


def members(endpoint: dict[str, Any]) -> list[str]:
    """The addresses of all members of the control plane, as this node may ask. Raises ``OSError``, ``ValueError``."""
    context = ssl.create_default_context(cafile=AUTHORITY)
    context.load_cert_chain(KUBELET)
    url = f"https://{endpoint['host']}:{endpoint['port']}{MEMBERS}"
    with urllib.request.urlopen(url, timeout=SECONDS, context=context) as answer:
        return addresses(json.load(answer))


def label(value: str) -> bool:
    """Label this machine's Node with the state of the machine's interruption: ``watched`` or ``announced``. Whether the
    cluster took it: the machine may not have joined yet. A kubelet may label its own Node."""
    try:
        with open(ENDPOINT) as file:
            endpoint = json.load(file)
        context = ssl.create_default_context(cafile=AUTHORITY)
        context.load_cert_chain(KUBELET)
        url = f"https://{endpoint['host']}:{endpoint['port']}/api/v1/nodes/{endpoint['node_name']}"
        body = json.dumps({"metadata": {"labels": {INTERRUPTION: value}}}).encode()
        headers = {"Content-Type": "application/merge-patch+json"}
        request = urllib.request.Request(url, body, headers, method="PATCH")
        with urllib.request.urlopen(request, timeout=SECONDS, context=context):  # noqa: S310
            return True
    except (OSError, ValueError, KeyError):
        return False


def refresh(endpoint: dict[str, Any]) -> None:
    """Keep the members that there are now. A cluster that does not answer changes nothing."""
    try:
        present = members(endpoint)
    except (OSError, ValueError):
        return
    if present and present != endpoint["addresses"]:
        endpoint["addresses"] = present
        with open(ENDPOINT + ".stockyard", "w") as file:
            json.dump(endpoint, file)
        os.replace(ENDPOINT + ".stockyard", ENDPOINT)


def update(endpoint: dict[str, Any]) -> bool:
    """Write the addresses that answer into the hosts file, and only these. Whether that changed it."""
    host, port = endpoint["host"], endpoint["port"]
    return write(host, [address for address in endpoint["addresses"] if answers(address, host, port)])


def write(host: str, near: list[str]) -> bool:
    """Let the name lead to these addresses, and to no others. Whether that changed the hosts file."""
    with open(HOSTS) as file:
        before = file.read()
    other_lines = [line for line in before.splitlines() if MARK not in line]
    after = "\n".join([*other_lines, *(f"{address} {host} {MARK}" for address in near)]) + "\n"
    if after == before:
        return False
    # Readers see the old file or the new one.
    with open(HOSTS + ".stockyard", "w") as file:
        file.write(after)
    os.chmod(HOSTS + ".stockyard", 0o644)
    os.replace(HOSTS + ".stockyard", HOSTS)
    return True


def main() -> None:
    """One look."""
    with open(ENDPOINT) as file:
        endpoint = json.load(file)
    refresh(endpoint)
    if update(endpoint):
        subprocess.run(["/bin/sh", "-c", RESTART], check=False)  # noqa: S603 - the command is ours


if __name__ == "__main__":
    main()
