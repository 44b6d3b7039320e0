"""Runs the Deployments of a simulated cluster as processes: one replica, its first container, and its mounts."""

from __future__ import annotations

import base64
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from local.kubernetes import processes
from local.kubernetes.api import KubeApi
from local.kubernetes.processes import ACCOUNT, Restarts
from local.kubernetes.store import Key, KubeStore, Object


@dataclass
class _Pod:
    template: Object
    process: subprocess.Popen[bytes]
    started: float = field(default_factory=time.monotonic)


class Containers:
    """The containers of one cluster. ``folder`` holds the files that they mount, ``log`` gets their output."""

    def __init__(self, api: KubeApi, url: str, authority: str, folder: Path, log: Path) -> None:
        self._api, self._url, self._authority = api, url, authority
        self._folder, self._log = folder, log
        self._pods: dict[Key, _Pod] = {}
        self._restarts = Restarts[Key]()
        self._made = 0

    @property
    def processes(self) -> list[int]:
        """The process ids of the running containers."""
        return [pod.process.pid for pod in self._pods.values() if pod.process.poll() is None]

    def reconcile(self) -> None:
        """Start missing containers, and end those that no Deployment has or whose template changed."""
        with self._api.locked_store() as store:
            deployments = {key: document for key, document in store.objects.items() if key.resource == "deployments"}
            started = {
                key: start
                for key, document in deployments.items()
                if (start := self._due(store, key, document)) is not None
            }
        outdated = [pod for key, pod in self._pods.items() if key in started or key not in deployments]
        processes.end([pod.process for pod in outdated])
        self._pods = {key: pod for key, pod in self._pods.items() if key in deployments}
        for key, (template, environment) in started.items():
            self._pods[key] = _Pod(template, processes.run(template["spec"], environment, self._log))

    def close(self) -> None:
        """End all containers."""
        processes.end([pod.process for pod in self._pods.values()])
        self._pods.clear()

    def _due(self, store: KubeStore, key: Key, deployment: Object) -> tuple[Object, dict[str, str]] | None:
        """The template and the environment of a pod that has to start now; None when none has to."""
        template = deployment["spec"]["template"]
        pod = self._pods.get(key)
        if pod is not None and pod.template == template:
            if pod.process.poll() is None:
                return None
            if not self._restarts.due(key, pod.started):
                return None
        if not processes.runs_here(template["spec"]):
            return None
        files = _mounted(store, key.namespace, template["spec"])
        if files is None:
            return None
        self._made += 1
        root = self._folder / f"pod-{self._made}"
        for path, data in files.items():
            processes.write(root / path, data)
        environment = self._environment(root, key, template["spec"], f"{key.name}-{self._made}")
        return template, environment

    def _environment(self, root: Path, key: Key, spec: Mapping[str, Any], pod: str) -> dict[str, str]:
        """The pod's environment. Also writes the files of the service account that every pod mounts."""
        account = spec.get("serviceAccountName", "default")
        texts = {
            "token": self._api.issue(key.namespace, account),
            "ca.crt": self._authority,
            "namespace": key.namespace,
        }
        for name, text in texts.items():
            processes.write(root / ACCOUNT / name, text.encode())
        fields = {"metadata.name": pod, "metadata.namespace": key.namespace}
        return processes.environment(root, self._url, spec, fields)


def _mounted(store: KubeStore, namespace: str, spec: Mapping[str, Any]) -> dict[str, bytes] | None:
    """The content of each file that the first container mounts, by path without leading slash.

    None while a ConfigMap or Secret is missing.
    """
    volumes = {volume["name"]: volume for volume in spec.get("volumes", ())}
    files: dict[str, bytes] = {}
    for mount in spec["containers"][0].get("volumeMounts", ()):
        volume = volumes[mount["name"]]
        secret = "secret" in volume
        reference = volume["secret"] if secret else volume["configMap"]
        name = reference["secretName"] if secret else reference["name"]
        source = store.objects.get(Key("", "secrets" if secret else "configmaps", namespace, name))
        if source is None and reference.get("optional"):
            continue
        if source is None:
            return None
        texts = source.get("data") or {}
        items = reference.get("items") or [{"key": key, "path": key} for key in texts]
        for item in items:
            text = texts[item["key"]]
            data = base64.b64decode(text) if secret else text.encode()
            files[f"{mount['mountPath'].strip('/')}/{item['path']}"] = data
    return files
