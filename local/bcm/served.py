"""The head node of the local cloud: a small inventory behind TLS, with a certificate for the tenant."""

from __future__ import annotations

import base64
import hashlib
import shutil
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from local.authority import Authority
from local.bcm.head_node import HeadNode
from local.bcm.inventory import device, group, head
from local.bcm.server import HeadNodeServer

BOOT, INSTALL = timedelta(seconds=0.5), timedelta(seconds=1)
WORD = "stockyard-may-install"
CPU, GPU = ("cpu-node-1", "cpu-node-2"), ("gpu-node-1", "gpu-node-2", "gpu-node-3")
"""Nodes as the published documents name them."""


class ServedHeadNode:
    """A head node on a port, with files of certificates below ``folder``. It listens until ``close``."""

    def __init__(self, folder: Path) -> None:
        self.head_node = HeadNode(lambda: datetime.now(UTC), BOOT, INSTALL)
        self.head_node.add([head()])
        for number, name in enumerate((*CPU, *GPU), 1):
            self.head_node.add([device(name, number, notes=WORD)], cores=64, memory_gib=256, gpus=name in GPU)
        self.head_node.add([device("login", 99, notes="people log in here")])
        self.head_node.groups.append(group("cpu-node-group", [*CPU, "login"]))
        self._folder = folder
        authority = Authority(folder, "BCM")
        certificate, key = authority.issue("head")
        self.client_files = authority.issue_client("admin")
        self.server = HeadNodeServer(self.head_node, certificate, key, authority.path)
        self.url = self.server.url
        der = ssl.PEM_cert_to_DER_cert(certificate.read_text(encoding="utf-8"))
        self.fingerprint = hashlib.sha256(der).hexdigest()
        self.of_functions: Mapping[str, str] = {"STOCKYARD_STAND_IN_HOSTS": self.url.removeprefix("https://")}
        """What functions are told of it: it is at an address that accounts may not name."""
        self.of_people: Mapping[str, str] = {
            "BCM_ENDPOINT": self.url,
            "BCM_FINGERPRINT": self.fingerprint,
            "BCM_CLIENT_CERTIFICATE": str(self.client_files[0]),
            "BCM_CLIENT_KEY": str(self.client_files[1]),
        }
        """What the tenant has, for ``env``."""

    def attributes(self) -> dict[str, str]:
        """Attributes of an account of it."""
        certificate, key = (base64.b64encode(path.read_bytes()).decode() for path in self.client_files)
        return {
            "endpoint": self.url,
            "fingerprint": self.fingerprint,
            "client_certificate": certificate,
            "client_key": key,
        }

    def close(self) -> None:
        """Stop listening, and remove the files of certificates."""
        self.server.close()
        shutil.rmtree(self._folder, ignore_errors=True)
