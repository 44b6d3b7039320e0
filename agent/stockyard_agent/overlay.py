"""The list of the overlay's machines, which the agent writes for these to read: one ConfigMap."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from .kubernetes import APPLY, Kubernetes, Refused, path_of
from .transport import Unreachable

NAMESPACE, NAME = "stockyard-system", "overlay"
LIMIT = 1_000_000
"""The largest list in bytes; Kubernetes takes 1 MiB with all that is around it."""


class OverlayList:
    """``version`` is that of the list that was written last; None before the first one."""

    def __init__(self, kube: Kubernetes, log: Callable[[str], None]) -> None:
        self._kube, self._log = kube, log
        self.version: str | None = None
        self._trouble = ""

    def hear(self, content: Mapping[str, Any] | None) -> None:
        """Write the list of an answer, if it has one. What goes wrong is logged once; the list comes with the next
        answer again."""
        if content is None:
            return
        trouble = ""
        try:
            version, peers = str(content["version"]), json.dumps(content["peers"], separators=(",", ":"))
            if len(peers) > LIMIT:
                raise ValueError(f"the list of the overlay has {len(peers)} bytes, over {LIMIT}")
            self._write({"version": version, "peers": peers})
            self.version = version
        except (Refused, Unreachable, OSError, ValueError) as error:
            trouble = str(error)
        except KeyError:
            trouble = "the answer has no list"
        if trouble and trouble != self._trouble:
            self._log(f"The overlay waits: {trouble}")
        self._trouble = trouble

    def _write(self, data: Mapping[str, str]) -> None:
        about = {"name": NAME, "namespace": NAMESPACE, "labels": {"app.kubernetes.io/managed-by": "stockyard-agent"}}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": dict(data)}
        path = path_of("namespaces", NAMESPACE, "configmaps", NAME)
        query = {"fieldManager": "stockyard-agent", "force": "true"}
        self._kube.call("PATCH", path, body, query=query, content_type=APPLY)
