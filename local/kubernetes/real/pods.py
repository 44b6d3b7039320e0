"""Runs those pods of a real cluster as processes whose program is Python, or is built of its cloud's; all others are
kwok's alone."""

from __future__ import annotations

import base64
import itertools
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from local.kubernetes import processes
from local.kubernetes.cluster import PodKeys
from local.kubernetes.processes import Restarts
from local.kubernetes.real import cloud
from local.kubernetes.real.client import Client, Refused
from local.kubernetes.store import Object

TOKEN_SECONDS = 3600
RENEW_SECONDS = 2400.0
"""Age at which a pod gets a new token, as its kubelet would give it before the old one ends."""


@dataclass
class _Container:
    root: Path
    process: subprocess.Popen[bytes]
    started: float = field(default_factory=time.monotonic)
    renewed: float = field(default_factory=time.monotonic)


class Pods:
    """The processes of one cluster. ``client`` is the administrator; ``folder`` takes what the pods mount, ``log``
    their output. ``environment`` is added to theirs; ``machine`` tells by a node's name what programs of its cloud find
    in theirs, ``keys`` which role of the cloud a pod's service account has."""

    def __init__(
        self,
        client: Client,
        url: str,
        folder: Path,
        log: Path,
        environment: Mapping[str, str],
        machine: Callable[[str], Mapping[str, str]],
        keys: PodKeys = lambda _namespace, _account: {},
    ) -> None:
        self._client, self._url, self._folder, self._log = client, url, folder, log
        self._extra, self._machine, self._keys = dict(environment), machine, keys
        self._containers: dict[str, _Container] = {}
        self._restarts = Restarts[str]()
        self._number = itertools.count(1)

    @property
    def processes(self) -> list[int]:
        """The process ids of the running containers."""
        return [entry.process.pid for entry in list(self._containers.values()) if entry.process.poll() is None]

    def reconcile(self, down: frozenset[str]) -> None:
        """Start the pods that run on nodes other than those ``down``, and end the rest. Raises ``Refused``,
        ``OSError``."""
        items = self._client.call("GET", "/api/v1/pods?fieldSelector=status.phase=Running")["items"]
        running = {
            pod["metadata"]["uid"]: pod
            for pod in items
            if (processes.runs_here(pod["spec"]) or self._is_of_cloud(pod["spec"]))
            and pod["spec"]["nodeName"] not in down
            and "deletionTimestamp" not in pod["metadata"]
        }
        self._end([uid for uid in self._containers if uid not in running])
        for uid, pod in running.items():
            container = self._containers.get(uid)
            if container is None or container.process.poll() is not None:
                self._start(uid, pod)
            elif time.monotonic() - container.renewed > RENEW_SECONDS:
                self._mount(container.root, pod)
                container.renewed = time.monotonic()

    def close(self) -> None:
        """End all containers."""
        self._end(list(self._containers))

    def _end(self, uids: list[str]) -> None:
        outdated = [self._containers.pop(uid) for uid in uids]
        processes.end([container.process for container in outdated])
        for container in outdated:
            shutil.rmtree(container.root, ignore_errors=True)

    def _start(self, uid: str, pod: Object) -> None:
        container = self._containers.get(uid)
        if container is not None and not self._restarts.due(uid, container.started):
            return
        root = container.root if container else self._folder / f"pod-{next(self._number)}"
        if self._mount(root, pod):
            self._containers[uid] = _Container(root, self._process(root, pod))

    def _is_of_cloud(self, spec: Mapping[str, Any]) -> bool:
        """Whether a pod's program is of its machine's cloud. Machines of other clouds have no place for it."""
        return cloud.program_of(spec) is not None and bool(self._machine(spec["nodeName"]))

    def _process(self, root: Path, pod: Object) -> subprocess.Popen[bytes]:
        spec = pod["spec"]
        program = cloud.program_of(spec)
        if program is None:
            values = {**processes.environment(root, self._url, spec, _fields(pod)), **self._extra}
            return processes.run(spec, values, self._log)
        own = self._keys(pod["metadata"]["namespace"], spec.get("serviceAccountName", "default"))
        sandbox = cloud.PodSandbox(root, self._url, {**self._extra, **self._machine(spec["nodeName"]), **own})
        return cloud.run(program, spec, _fields(pod), sandbox, self._folder)

    def _mount(self, root: Path, pod: Object) -> bool:
        """Write what the first container mounts; False while a ConfigMap or Secret is missing."""
        volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes", ())}
        files: dict[Path, bytes] = {}
        try:
            for mount in pod["spec"]["containers"][0].get("volumeMounts", ()):
                mount_path = root / mount["mountPath"].strip("/")
                for name, data in self._volume(pod, volumes[mount["name"]]).items():
                    files[mount_path / name] = data
        except Refused as refused:
            if refused.status != 404:
                raise
            return False
        for path, data in files.items():
            processes.write(path, data)
        return True

    def _volume(self, pod: Object, volume: Mapping[str, Any]) -> dict[str, bytes]:
        """File name -> content of a volume. A volume of another kind is an empty folder."""
        namespace = pod["metadata"]["namespace"]
        if "secret" in volume:
            return self._data("secrets", namespace, volume["secret"]["secretName"], volume["secret"])
        if "configMap" in volume:
            return self._data("configmaps", namespace, volume["configMap"]["name"], volume["configMap"])
        files: dict[str, bytes] = {}
        for source in (volume.get("projected") or {}).get("sources", ()):
            if "serviceAccountToken" in source:
                token_source = source["serviceAccountToken"]
                files[token_source["path"]] = self._token(pod, token_source.get("audience", "")).encode()
            for kind, resource in (("configMap", "configmaps"), ("secret", "secrets")):
                if kind in source:
                    files |= self._data(resource, namespace, source[kind]["name"], source[kind])
            for item in (source.get("downwardAPI") or {}).get("items", ()):
                files[item["path"]] = _fields(pod)[item["fieldRef"]["fieldPath"]].encode()
        return files

    def _data(self, resource: str, namespace: str, name: str, source: Mapping[str, Any]) -> dict[str, bytes]:
        try:
            document = self._client.call("GET", f"/api/v1/namespaces/{namespace}/{resource}/{name}")
        except Refused as refused:
            if refused.status != 404 or not source.get("optional"):
                raise
            return {}
        is_secret = resource == "secrets"
        texts = (document.get("data") or {}).items()
        data = {key: base64.b64decode(text) if is_secret else text.encode() for key, text in texts}
        if "items" in source:
            return {item["path"]: data[item["key"]] for item in source["items"]}
        return data

    def _token(self, pod: Object, audience: str) -> str:
        """A token of the pod's service account, which ends with the pod."""
        meta = pod["metadata"]
        name = pod["spec"].get("serviceAccountName", "default")
        bound = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
        spec: dict[str, Any] = {"boundObjectRef": bound, "expirationSeconds": TOKEN_SECONDS}
        if audience:
            spec["audiences"] = [audience]
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        path = f"/api/v1/namespaces/{meta['namespace']}/serviceaccounts/{name}/token"
        return str(self._client.call("POST", path, request)["status"]["token"])


def _fields(pod: Object) -> dict[str, str]:
    """Fields that a ``fieldRef`` may name."""
    meta = pod["metadata"]
    return {
        "metadata.name": meta["name"],
        "metadata.namespace": meta["namespace"],
        "metadata.uid": meta["uid"],
        "spec.nodeName": pod["spec"]["nodeName"],
        "spec.serviceAccountName": pod["spec"].get("serviceAccountName", "default"),
        "status.podIP": str(pod["status"].get("podIP", "")),
        "status.hostIP": str(pod["status"].get("hostIP", "")),
    }
