"""Deployments of a simulated cluster as processes: one replica, its first container, with what its pod mounts.

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

from local.kube_api import KubeApi
from local.kube_store import Key, KubeStore, Object

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
    """Those of one cluster. ``folder`` takes what they mount, ``log`` what they print."""

    def __init__(self, api: KubeApi, url: str, authority: str, folder: Path, log: Path) -> None:
        self._api, self._url, self._authority = api, urlsplit(url), authority
        self._folder, self._log = folder, log
        self._pods: dict[Key, _Pod] = {}
        self._again: dict[Key, tuple[float, float]] = {}
        self._made = 0

    @property
    def processes(self) -> list[int]:
        """The ids of those that run."""
        return [pod.process.pid for pod in self._pods.values() if pod.process.poll() is None]

    def reconcile(self) -> None:
        """Start what is wanted and does not run, end what is not wanted or is out of date."""
        with self._api.held() as store:
            wanted = {key: found for key, found in store.objects.items() if key.resource == "deployments"}
            started = {key: one for key, found in wanted.items() if (one := self._due(store, key, found)) is not None}
        outdated = [pod for key, pod in self._pods.items() if key in started or key not in wanted]
        _end([pod.process for pod in outdated])
        self._pods = {key: pod for key, pod in self._pods.items() if key in wanted}
        for key, (template, environment) in started.items():
            self._pods[key] = _Pod(template, self._run(template, environment))

    def close(self) -> None:
        """End all, as a kubelet does: told first, killed after a grace."""
        _end([pod.process for pod in self._pods.values()])
        self._pods.clear()

    def _due(self, store: KubeStore, key: Key, deployment: Object) -> tuple[Object, dict[str, str]] | None:
        """The template and the environment of a pod that is to be started now."""
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
        environment = self._told(root, key, template["spec"], f"{key.name}-{self._made}")
        return template, environment

    def _waited(self, key: Key, pod: _Pod) -> bool:
        pause, until = self._again.get(key, (0.0, 0.0))
        now = time.monotonic()
        if until < pod.started:
            pause = RESTART_SECONDS if now - pod.started > LONGEST else min(max(2 * pause, RESTART_SECONDS), LONGEST)
            self._again[key] = (pause, now + pause)
            return False
        return now >= until

    def _told(self, root: Path, key: Key, spec: Mapping[str, Any], pod: str) -> dict[str, str]:
        """The pod's environment; also writes what every pod of a service account finds."""
        account = spec.get("serviceAccountName", "default")
        texts = {
            "token": self._api.issue(key.namespace, account),
            "ca.crt": self._authority,
            "namespace": key.namespace,
        }
        for name, text in texts.items():
            _write(root / ACCOUNT / name, text.encode())
        container = spec["containers"][0]
        folders = [one["mountPath"] for one in container.get("volumeMounts", ())]
        own = {"metadata.name": pod, "metadata.namespace": key.namespace}
        values = {
            one["name"]: one["value"] if "value" in one else own[one["valueFrom"]["fieldRef"]["fieldPath"]]
            for one in container.get("env", ())
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
            return subprocess.Popen(
                command,
                env=dict(environment),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,  # Ctrl-C reaches the local cloud, which then ends its parts in order
            )


def _mounted(store: KubeStore, namespace: str, spec: Mapping[str, Any]) -> dict[str, bytes] | None:
    """Path without its first slash -> content of all that the first container mounts; None while a part is missing."""
    volumes = {one["name"]: one for one in spec.get("volumes", ())}
    files: dict[str, bytes] = {}
    for mount in spec["containers"][0].get("volumeMounts", ()):
        volume = volumes[mount["name"]]
        secret = "secret" in volume
        name = volume["secret"]["secretName"] if secret else volume["configMap"]["name"]
        found = store.objects.get(Key("", "secrets" if secret else "configmaps", namespace, name))
        if found is None:
            return None
        for file, text in (found.get("data") or {}).items():
            data = base64.b64decode(text) if secret else text.encode()
            files[f"{mount['mountPath'].strip('/')}/{file}"] = data
    return files


def _placed(root: Path, value: str, folders: Sequence[str]) -> str:
    """A path that holds a mounted folder stands below ``root``; any other value stays."""
    if any(f"{folder}/".startswith(f"{value.rstrip('/')}/") for folder in folders if value.startswith("/")):
        return str(root / value.lstrip("/"))
    return value


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.touch(mode=0o600)
    path.write_bytes(data)


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    alive = [one for one in processes if one.poll() is None]
    for process in alive:
        process.send_signal(signal.SIGTERM)
    end = time.monotonic() + GRACE_SECONDS
    for process in alive:
        try:
            process.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
