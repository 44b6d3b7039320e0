"""The cloud's own controllers of a real cluster: the manifests of its machines, and the real programs of their pods.

The programs run as processes. What a pod finds at a fixed place is told by flags and by the environment instead: the
API server and its account, the cloud's services, and the metadata of the machine that the pod is on.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.children import start
from local.kubernetes.cluster import HOPS
from local.kubernetes.processes import ACCOUNT
from local.kubernetes.real.build import (
    BINARIES,
    CLOUD_CONTROLLER,
    DRIVER,
    MANIFESTS,
    driver_manifests,
    missing_cloud,
    missing_driver,
    release,
    releases,
)
from stockyard.machines import manifests

KUSTOMIZATION = f"{manifests.FOLDER}/kustomization.yaml"
_DRIVER_IMAGE = "public.ecr.aws/ebs-csi-driver/aws-ebs-csi-driver"
_ARGUMENTS = {
    CLOUD_CONTROLLER: ("--kubeconfig={kubeconfig}", "--secure-port=0"),
    DRIVER: ("--kubeconfig={kubeconfig}",),
}
"""Program -> flags that stand for what a pod finds at a fixed place, or has to itself: here all share the ports."""
_METADATA = "AWS_EC2_METADATA_SERVICE_ENDPOINT"
WITH_DRIVER = "STOCKYARD_LOCAL_DRIVER"
"""The variable of the environment with which clusters have the driver of volumes: a process more on every node."""
HERE = "/proc/self/cwd"
"""A short name of a pod's files for its own program: a socket's path has no room for a long one."""


@dataclass(frozen=True, slots=True)
class PodSandbox:
    """Sandbox of a pod's program: its files are below ``root``, the API server is at ``url``, and ``environment`` is
    what it is told of its machine."""

    root: Path
    url: str
    environment: Mapping[str, str]


def prepared(folder: Path, files: Mapping[str, str]) -> bool:
    """Whether a machine's ``files``, path -> text, ask for the cloud's controllers and these can be run. Then all that
    kustomize reads is in ``folder``."""
    document = json.loads(files.get(KUSTOMIZATION, "{}"))
    # Machines of other clouds may have other things for kustomize.
    if manifests.CLOUD_CONTROLLER.path not in document.get("resources", ()) or missing_cloud():
        return False
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    # These would only be pods that nobody runs: machines here show their GPUs without the plugin.
    document = _without(document, manifests.DEVICE_PLUGIN.path, "nvidia-device-plugin")
    if missing_driver() or WITH_DRIVER not in os.environ:
        document = _without(document, manifests.EBS_DRIVER.path, "ebs-csi")
    else:
        shutil.copytree(driver_manifests(), folder / manifests.EBS_DRIVER.path)
    (folder / "kustomization.yaml").write_text(json.dumps(document), encoding="utf-8")
    (folder / "storage-class.yaml").write_text(files[f"{manifests.FOLDER}/storage-class.yaml"], encoding="utf-8")
    shutil.copytree(MANIFESTS / manifests.CLOUD_CONTROLLER.path, folder / manifests.CLOUD_CONTROLLER.path)
    return True


def _without(document: Mapping[str, Any], path: str, name: str) -> dict[str, Any]:
    """The kustomization without the resources below the path, and without patches of what is called so."""
    return {
        **document,
        "patches": [patch for patch in document["patches"] if not patch["target"]["name"].startswith(name)],
        "resources": [resource for resource in document["resources"] if not resource.startswith(path)],
    }


def program_of(spec: Mapping[str, Any]) -> Path | None:
    """The program of a pod's first container, of the minor that its image names; None for one that is not built."""
    image, _, tag = str(spec["containers"][0].get("image", "")).rpartition(":")
    minor = re.match(r"v(\d+\.\d+)\.", tag)
    path = None
    if image == manifests.CLOUD_IMAGE and minor is not None and minor[1] in releases():
        path = BINARIES / releases()[minor[1]] / CLOUD_CONTROLLER
    elif image == _DRIVER_IMAGE:
        path = BINARIES / release() / DRIVER
    return path if path is not None and path.exists() else None


def run(
    program: Path, spec: Mapping[str, Any], fields: Mapping[str, str], sandbox: PodSandbox, logs: Path
) -> subprocess.Popen[bytes]:
    """Start the program of a pod's first container. ``fields`` are what a ``fieldRef`` may name; what the program
    prints goes to a file of the node in ``logs``."""
    container = spec["containers"][0]
    folders = [str(mount["mountPath"]).rstrip("/") for mount in container.get("volumeMounts", ())]
    for folder in folders:
        (sandbox.root / folder.lstrip("/")).mkdir(parents=True, exist_ok=True)
    kubeconfig = sandbox.root / "kubeconfig"
    kubeconfig.write_text(json.dumps(_kubeconfig(sandbox)), encoding="utf-8")
    own = {name: _placed(value, folders) for name, value in _values(container, fields).items()}
    arguments = [re.sub(r"\$\((\w+)\)", lambda name: own[name[1]], text) for text in container.get("args", ())]
    flags = [flag.format(kubeconfig=kubeconfig) for flag in _ARGUMENTS[program.name]]
    environment = {"HOME": str(sandbox.root), **sandbox.environment, **own}
    if int(environment.pop(HOPS, "1")) < (1 if spec.get("hostNetwork") else 2):
        del environment[_METADATA]
        environment["AWS_EC2_METADATA_DISABLED"] = "true"
    with (logs / f"{program.name}-{fields['spec.nodeName']}.log").open("ab", buffering=0) as log:
        return start([str(program), *arguments, *flags], env=environment, cwd=sandbox.root, stdout=log, stderr=log)


def _values(container: Mapping[str, Any], fields: Mapping[str, str]) -> dict[str, str]:
    """A container's environment, but for what optional Secrets and ConfigMaps might tell, of which there are none."""
    values = {}
    for variable in container.get("env", ()):
        source = (variable.get("valueFrom") or {}).get("fieldRef")
        if source is not None:
            values[variable["name"]] = fields[source["fieldPath"]]
        elif "value" in variable:
            values[variable["name"]] = str(variable["value"])
    return values


def _placed(value: str, folders: list[str]) -> str:
    """The value with a mounted folder's path moved below the pod's own."""
    for folder in folders:
        if f":{folder}/" in value or value.startswith(f"{folder}/") or f"//{folder}/" in value:
            return value.replace(folder, f"{HERE}{folder}", 1)
    return value


def _kubeconfig(sandbox: PodSandbox) -> dict[str, Any]:
    """Kubeconfig for a program that finds no account at the usual place."""
    account = sandbox.root / ACCOUNT
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "own", "cluster": {"server": sandbox.url, "certificate-authority": str(account / "ca.crt")}}
        ],
        "users": [{"name": "own", "user": {"tokenFile": str(account / "token")}}],
        "contexts": [{"name": "own", "context": {"cluster": "own", "user": "own"}}],
        "current-context": "own",
    }
