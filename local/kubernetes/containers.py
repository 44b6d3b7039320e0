"""Runs the Deployments of a simulated cluster as processes: one replica, its first container, and its mounts.

A process has no file system of its own. So mounted folders stand below a folder, and values of the environment that
name one of them are changed to that; what a pod finds at a fixed place is told by the environment.
"""

from __future__ import annotations

import base64
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from local.children import start
from local.kubernetes.api import KubeApi
from local.kubernetes.store import Key, KubeStore, Object

ACCOUNT = "var/run/secrets/kubernetes.io/serviceaccount"
PYTHON = "python3"
"""The program that can be run here; a Deployment of another one stays without a pod."""
RESTART_SECONDS, LONGEST = 1.0, 30.0
"""Pause before a process that ended is started again; it doubles up to the longest."""
GRACE_SECONDS = 5.0


@dataclass
class _Pod:
    template: Object
    process: subprocess.Popen[bytes]
    started: float = field(default_factory=time.monotonic)


class Containers:
    """The containers of one cluster. ``folder`` holds the files that they mount, ``log`` gets their output."""

    def __init__(self, api: KubeApi, url: str, authority: str, folder: Path, log: Path) -> None:
        self._api, self._url, self._authority = api, urlsplit(url), authority
        self._folder, self._log = folder, log
        self._pods: dict[Key, _Pod] = {}
        self._again: dict[Key, tuple[float, float]] = {}
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
        _end([pod.process for pod in outdated])
        self._pods = {key: pod for key, pod in self._pods.items() if key in deployments}
        for key, (template, environment) in started.items():
            self._pods[key] = _Pod(template, self._run(template, environment))

    def close(self) -> None:
        """End all containers as a kubelet does: SIGTERM, then SIGKILL after a grace period."""
        _end([pod.process for pod in self._pods.values()])
        self._pods.clear()

    def _due(self, store: KubeStore, key: Key, deployment: Object) -> tuple[Object, dict[str, str]] | None:
        """The template and the environment of a pod that has to start now; None when none has to."""
        template = deployment["spec"]["template"]
        pod = self._pods.get(key)
        if pod is not None and pod.template == template:
            if pod.process.poll() is None:
                return None
            if not self._waited(key, pod):
                return None
        container = template["spec"]["containers"][0]
        if container["command"][0] != PYTHON:
            return None
        files = _mounted(store, key.namespace, template["spec"])
        if files is None:
            return None
        self._made += 1
        root = self._folder / f"pod-{self._made}"
        for path, data in files.items():
            _write(root / path, data)
        environment = self._environment(root, key, template["spec"], f"{key.name}-{self._made}")
        return template, environment

    def _waited(self, key: Key, pod: _Pod) -> bool:
        pause, until = self._again.get(key, (0.0, 0.0))
        now = time.monotonic()
        if until < pod.started:
            pause = RESTART_SECONDS if now - pod.started > LONGEST else min(max(2 * pause, RESTART_SECONDS), LONGEST)
            self._again[key] = (pause, now + pause)
            return False
        return now >= until

    def _environment(self, root: Path, key: Key, spec: Mapping[str, Any], pod: str) -> dict[str, str]:
        """The pod's environment. Also writes the files of the service account that every pod mounts."""
        account = spec.get("serviceAccountName", "default")
        texts = {
            "token": self._api.issue(key.namespace, account),
            "ca.crt": self._authority,
            "namespace": key.namespace,
        }
        for name, text in texts.items():
            _write(root / ACCOUNT / name, text.encode())
        container = spec["containers"][0]
        folders = [mount["mountPath"] for mount in container.get("volumeMounts", ())]
        own = {"metadata.name": pod, "metadata.namespace": key.namespace}
        values = {
            variable["name"]: variable["value"]
            if "value" in variable
            else own[variable["valueFrom"]["fieldRef"]["fieldPath"]]
            for variable in container.get("env", ())
        }
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "KUBERNETES_SERVICE_HOST": self._url.hostname or "",
            "KUBERNETES_SERVICE_PORT": str(self._url.port),
            "STOCKYARD_ACCOUNT_DIR": str(root / ACCOUNT),
            **{name: _placed(root, value, folders) for name, value in values.items()},
        }

    def _run(self, template: Mapping[str, Any], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        command = [sys.executable, *template["spec"]["containers"][0]["command"][1:]]
        with self._log.open("ab", buffering=0) as log:
            return start(
                command,
                env=dict(environment),
                cwd="/",
                stdout=log,
                stderr=log,
            )


def _mounted(store: KubeStore, namespace: str, spec: Mapping[str, Any]) -> dict[str, bytes] | None:
    """The content of each file that the first container mounts, by path without leading slash.

    None while a ConfigMap or Secret is missing.
    """
    volumes = {volume["name"]: volume for volume in spec.get("volumes", ())}
    files: dict[str, bytes] = {}
    for mount in spec["containers"][0].get("volumeMounts", ()):
        volume = volumes[mount["name"]]
        secret = "secret" in volume
        name = volume["secret"]["secretName"] if secret else volume["configMap"]["name"]
        source = store.objects.get(Key("", "secrets" if secret else "configmaps", namespace, name))
        if source is None:
            return None
        for file, text in (source.get("data") or {}).items():
            data = base64.b64decode(text) if secret else text.encode()
            files[f"{mount['mountPath'].strip('/')}/{file}"] = data
    return files


def _placed(root: Path, value: str, folders: Sequence[str]) -> str:
    """The value moved below ``root`` if it is a path inside a mounted folder; any other value unchanged."""
    if any(f"{folder}/".startswith(f"{value.rstrip('/')}/") for folder in folders if value.startswith("/")):
        return str(root / value.lstrip("/"))
    return value


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.touch(mode=0o600)
    path.write_bytes(data)


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    alive = [process for process in processes if process.poll() is None]
    for process in alive:
        process.send_signal(signal.SIGTERM)
    end = time.monotonic() + GRACE_SECONDS
    for process in alive:
        try:
            process.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
