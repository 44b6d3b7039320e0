"""Another machine of an overlay as one machine knows it, and what both programs of the overlay ask their system for.

It stands beside ``stockyard_overlay``. Standard library only.
"""

from __future__ import annotations

import ipaddress
import json
import os
import socket
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Callable
from typing import Any

STATE = os.environ.get("STOCKYARD_STATE", "/etc/stockyard")
AUTHORITY = os.environ.get("STOCKYARD_AUTHORITY", "/etc/kubernetes/pki/ca.crt")
KUBELET = os.environ.get("STOCKYARD_KUBELET", "/var/lib/kubelet/pki/kubelet-client-current.pem")
LIST = "/api/v1/namespaces/stockyard-system/configmaps/overlay"
SECONDS = 3
ATTEMPTS = 60
UNIT = "stockyard-overlay.service"
TICK = float(os.environ.get("STOCKYARD_OVERLAY_TICK", "5"))
STATUS = os.environ.get("STOCKYARD_OVERLAY_STATUS", "/run/stockyard-overlay.json")


def run(*arguments: str, text: str | None = None) -> str:
    """Output of a command. Raises ``CalledProcessError``, which is no ``OSError``."""
    return subprocess.run(arguments, input=text, check=True, capture_output=True, text=True).stdout  # noqa: S603


def load(name: str) -> dict[str, Any]:
    """One of the files of this machine."""
    with open(os.path.join(STATE, name)) as file:
        document: dict[str, Any] = json.load(file)
    return document


class Peer:
    """Another machine: what the list says of it, and what is known of the direct path to it."""

    def __init__(self, entry: dict[str, Any], probe: str) -> None:
        self.address, self.key, self.probe = str(entry["address"]), str(entry["key"]), probe
        self.hub = bool(entry.get("hub"))
        self.endpoints: list[str] = [str(endpoint) for endpoint in entry.get("endpoints") or ()]
        self.heard = self.tried = float("-inf")
        self.begun = time.monotonic()
        self.last_tried = -1
        self.hears = False
        self.direct = False
        self.home = ""
        self.local = ""
        self.endpoint = ""
        self.homed: set[str] = set()


def address_of(endpoint: Any) -> str:
    """An IPv4 address with its port, as a machine says where it is; empty for anything else, as for a name."""
    host, _, port = str(endpoint or "").rpartition(":")
    try:
        return f"{ipaddress.IPv4Address(host)}:{int(port)}" if 0 < int(port) < 65536 else ""
    except ValueError:
        return ""


def resolved(endpoint: str) -> str:
    """An endpoint whose host may be a name, by address; empty for one that is not known. `wg` would wait for it."""
    host, _, port = endpoint.rpartition(":")
    try:
        addresses = socket.getaddrinfo(host, int(port), socket.AF_INET, socket.SOCK_DGRAM)
    except (OSError, ValueError):
        return ""
    return f"{addresses[0][4][0]}:{port}"


def own_context() -> ssl.SSLContext:
    """Trust in the cluster's authority alone, with this machine's kubelet's certificate. Raises ``OSError``."""
    context = ssl.create_default_context(cafile=AUTHORITY)
    context.load_cert_chain(KUBELET)
    return context


def fetch_list() -> dict[str, Any]:
    """The list of machines as the cluster has it. Raises ``OSError``, ``ValueError``, ``KeyError``."""
    endpoint = load("endpoint.json")
    url = f"https://{endpoint['host']}:{endpoint['port']}{LIST}"
    with urllib.request.urlopen(url, timeout=SECONDS, context=own_context()) as answer:
        data = json.load(answer)["data"]
    return {"version": str(data["version"]), "peers": json.loads(data["peers"])}


def enter(pause: Callable[[float], None] = time.sleep) -> None:
    """Start the unit, and wait until a hub is reached, where there is any. Raises ``OSError`` when none answers within
    five minutes."""
    configuration = load("overlay.json")
    for words in (("enable",), ("restart",)):
        run("systemctl", *words, UNIT)
    for _ in range(ATTEMPTS):
        try:
            with open(STATUS) as file:
                status = json.load(file)
            if status["address"] == configuration["address"] and (
                not configuration["peers"] or "hub" in status["peers"].values()
            ):
                return
        except (OSError, ValueError):
            pass
        pause(TICK)
    raise OSError("no hub of the overlay answers")
