"""Machines that start from EKS's image with a NodeConfig as user data: nodes outside of node groups.

What nodeadm does on them is played: it reads where the cluster is and what the kubelet is told. Whether the cluster
admits the machine is asked as EKS asks it: by the access entry of the role of its instance profile.
"""

from __future__ import annotations

import base64
import binascii
import gzip
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email import message_from_string
from typing import Any

import yaml

from local.aws.corrections.eks.access import principal_id
from local.aws.corrections.eks.eks import eks_backends
from local.aws.corrections.eks.scaling_groups import LOCK
from local.kubernetes.managed import ManagedCluster
from local.kubernetes.store import Object
from local.machines.managed_nodes import ManagedNode, Own

MEDIA_TYPE, KIND = "application/node.eks.aws", "NodeConfig"
NODE_ENTRY = "EC2_LINUX"
"""The type of access entries by which machines come in as nodes."""
_MIME = "MIME-Version:"
_NEEDED = ("name", "apiServerEndpoint", "certificateAuthority", "cidr")
"""What nodeadm refuses to start without."""


def node_config(user_data: str | bytes | None) -> Object | None:
    """The NodeConfig in an instance's user data, which may be in base 64 and compressed; None without one."""
    text = _text(user_data or b"")
    if not text.startswith(_MIME):
        return None
    for part in message_from_string(text).walk():
        if part.get_content_type() == MEDIA_TYPE:
            document = yaml.safe_load(str(part.get_payload()))
            if isinstance(document, dict) and document.get("kind") == KIND:
                return document
    return None


def _text(user_data: str | bytes) -> str:
    raw = user_data if isinstance(user_data, bytes) else str(user_data).encode()
    try:
        raw = raw if raw.startswith(_MIME.encode()) else base64.b64decode(raw, validate=True)
        return (gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw).decode(errors="replace")
    except (binascii.Error, OSError):
        return ""


@dataclass
class ConfiguredNode(ManagedNode):
    """See ``ManagedNode``. ``role`` gives the ARN of the role of the machine's instance profile, empty without one."""

    config: Object
    role: Callable[[], str]

    @property
    def cluster_name(self) -> str:
        """See ``ManagedNode``."""
        return str(self._cluster.get("name"))

    @property
    def _cluster(self) -> Mapping[str, Any]:
        return dict((self.config.get("spec") or {}).get("cluster") or {})

    def own(self) -> Own | None:
        """Labels and taints by the kubelet's flags."""
        flags = ((self.config.get("spec") or {}).get("kubelet") or {}).get("flags") or ()
        values = dict(str(flag).removeprefix("--").partition("=")[::2] for flag in flags)
        return _labels(values.get("node-labels", "")), _taints(values.get("register-with-taints", ""))

    def look(self) -> None:
        """See ``ManagedNode``: a kubelet's flags count at its registration alone."""

    def refusal(self, cluster: ManagedCluster | None) -> str:
        """See ``ManagedNode``: nodeadm misses something, it is not that cluster's API, or no entry is the role's."""
        absent = [name for name in _NEEDED if not self._cluster.get(name)]
        if absent:
            return f"nodeadm: spec.cluster of the NodeConfig has no {' and no '.join(absent)}"
        if cluster is None:
            return f"kubelet: {self.cluster_name} has no API"
        if self._cluster["apiServerEndpoint"] != cluster.url:
            return f"kubelet: {self._cluster['apiServerEndpoint']} does not answer for {self.cluster_name}"
        if self._cluster["certificateAuthority"] != base64.b64encode(cluster.certificate.encode()).decode():
            return f"kubelet: the certificate of {cluster.url} is not of the authority of the NodeConfig"
        return self._unauthorized(self.role())

    def _unauthorized(self, role: str) -> str:
        """Reason why EKS does not take the role for that of a node; empty when it does."""
        if not role:
            return "kubelet: the instance has no role"
        with LOCK:
            cluster = eks_backends[self.account][self.region].clusters.get(self.cluster_name)
            entry = cluster.entries.get(role) if cluster else None
            kind = entry.document["type"] if entry else ""
            is_former = entry is not None and entry.principal_id not in (None, principal_id(role))
        if is_former:
            return f"kubelet: Unauthorized: the access entry of {role} is of a former role of that name"
        if kind == NODE_ENTRY:
            return ""
        present = f"that of {role} is of type {kind}" if kind else f"there is none of {role}"
        return f"kubelet: Unauthorized: {self.cluster_name} admits nodes by access entries of {NODE_ENTRY}, {present}"


def _labels(text: str) -> dict[str, str]:
    return {key: value for key, _, value in (entry.partition("=") for entry in text.split(",") if entry)}


def _taints(text: str) -> list[Object]:
    """The taints of the kubelet's flag: ``key=value:Effect,...``."""
    taints: list[Object] = []
    for entry in filter(None, text.split(",")):
        named, _, effect = entry.rpartition(":")
        key, _, value = named.partition("=")
        taints.append({"key": key, "value": value, "effect": effect})
    return taints
