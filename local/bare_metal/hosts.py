"""Objects by which the owner of a cluster registers hosts of bare metal there."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

API_VERSION, KIND = "metal3.io/v1alpha1", "BareMetalHost"


def credentials(name: str, namespace: str) -> dict[str, Any]:
    """The Secret with which the operator speaks to the host's controller."""
    data = {key: base64.b64encode(text).decode() for key, text in (("username", b"admin"), ("password", b"secret"))}
    meta = {"name": f"{name}-bmc", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data}


def bare_metal_host(
    name: str,
    namespace: str,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A host, as its owner applies it."""
    meta: dict[str, Any] = {"name": name, "namespace": namespace, "labels": dict(labels or {})}
    meta |= {"annotations": dict(annotations)} if annotations else {}
    number = int.from_bytes(name.encode()[-4:]) & 0xFFFFFF
    usual = {
        "online": True,
        "bmc": {"address": f"redfish://192.0.2.1/{name}", "credentialsName": f"{name}-bmc"},
        "bootMACAddress": f"52:54:00:{number >> 16:02x}:{number >> 8 & 255:02x}:{number & 255:02x}",
    }
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": meta, "spec": {**usual, **spec}}
