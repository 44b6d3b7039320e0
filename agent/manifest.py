"""The manifest that installs the agent, rendered from its code: ``python -m agent.manifest --help``.

The output is YAML: JSON documents separated by ``---``. It contains no secret. The installer creates the Secret
``stockyard-agent`` in ``stockyard-system`` with the keys ``client_id`` and ``client_secret``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent import roles
from agent.roles import NAME, NAMESPACE, Document, document

IMAGE = (
    "public.ecr.aws/docker/library/python:3.13.7-slim-bookworm"
    "@sha256:adafcc17694d715c905b4c7bebd96907a1fd5cf183395f0ebc4d3428bd22d92d"
)
"""By digest, from a registry that limits nobody's pulls behind a shared address."""
SECRET = NAME
CODE = "/opt/stockyard"
CLIENT = "/var/run/stockyard"
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
AWAY_SECONDS = 30
"""How long the agent stays on a node that is not reached. It tells of nodes that are lost, its own one among them."""
LIMIT = 260_000
"""The largest manifest, in bytes. A ConfigMap may have 1 MiB, and what ``kubectl apply`` notes on one 256 KiB,
which is less than the whole manifest by roles and Deployment."""
_SOURCES = Path(__file__).parent / "stockyard_agent"
_USER = 65532


@dataclass(frozen=True, slots=True)
class Settings:
    """Address that the agent reports to, and the cluster that it reports for. ``image`` needs Python 3.11 or newer, and
    no packages."""

    api_url: str
    cluster_id: str
    token_url: str
    image: str = IMAGE


def documents(settings: Settings) -> list[Document]:
    """All objects, in the order in which they have to be created."""
    return [
        document("v1", "Namespace", NAMESPACE, "", labels=_pod_security()),
        document("v1", "ServiceAccount", NAME, NAMESPACE, automountServiceAccountToken=False),
        *roles.documents(),
        *upgrade(settings),
    ]


def upgrade(settings: Settings) -> list[Document]:
    """The objects that an older agent may apply to upgrade itself: code and Deployment, but not its roles."""
    code = sources()
    digest = hashlib.sha256(json.dumps(code, sort_keys=True).encode()).hexdigest()
    return [document("v1", "ConfigMap", NAME, NAMESPACE, data=code), _deployment(settings, digest)]


def render(settings: Settings) -> str:
    """The manifest as text. Raises ``ValueError`` when it is larger than ``LIMIT``."""
    text = "\n---\n".join(json.dumps(item, indent=1) for item in documents(settings)) + "\n"
    if len(text.encode()) > LIMIT:
        raise ValueError(f"the manifest has {len(text.encode())} bytes, over {LIMIT}")
    return text


def sources() -> dict[str, str]:
    """The agent's modules: key in the ConfigMap -> text. Keys have no slashes: ``cluster/nodes.py`` is
    ``cluster.nodes.py``."""
    return {".".join(path.relative_to(_SOURCES).parts): path.read_text(encoding="utf-8") for path in _modules()}


def _modules() -> list[Path]:
    return sorted(_SOURCES.rglob("*.py"))


def _pod_security() -> dict[str, str]:
    return {"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/enforce-version": "latest"}


def _deployment(settings: Settings, digest: str) -> Document:
    labels = {"app.kubernetes.io/name": NAME}
    template = {
        "metadata": {"labels": labels, "annotations": {"stockyard.dev/code": digest}},
        "spec": {
            "serviceAccountName": NAME,
            "automountServiceAccountToken": True,
            "enableServiceLinks": False,
            # No node can join without the agent, so it runs on the control plane and before pods that wait for nodes.
            "priorityClassName": "system-cluster-critical",
            "terminationGracePeriodSeconds": 5,
            "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [_near()]}},
            "tolerations": [
                {"key": CONTROL_PLANE, "operator": "Exists", "effect": "NoSchedule"},
                {"key": "CriticalAddonsOnly", "operator": "Exists"},
                # By itself Kubernetes leaves a pod on a node that is gone for five minutes.
                *(_for_a_while(condition) for condition in ("not-ready", "unreachable")),
            ],
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": _USER,
                "runAsGroup": _USER,
                "fsGroup": _USER,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [_container(settings)],
            "volumes": [
                {"name": "code", "configMap": {"name": NAME, "items": _items()}},
                {"name": "client", "secret": {"secretName": SECRET, "defaultMode": 0o440}},
            ],
        },
    }
    spec = {"replicas": 1, "strategy": {"type": "Recreate"}, "selector": {"matchLabels": labels}, "template": template}
    return document("apps/v1", "Deployment", NAME, NAMESPACE, spec=spec)


def _items() -> list[dict[str, str]]:
    """Items of the volume: the path of the file for each key of the ConfigMap."""
    paths = [path.relative_to(_SOURCES) for path in _modules()]
    return [{"key": ".".join(path.parts), "path": path.as_posix()} for path in paths]


def _for_a_while(condition: str) -> dict[str, Any]:
    key = f"node.kubernetes.io/{condition}"
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": AWAY_SECONDS}


def _near() -> dict[str, Any]:
    return {"weight": 1, "preference": {"matchExpressions": [{"key": CONTROL_PLANE, "operator": "Exists"}]}}


def _container(settings: Settings) -> dict[str, Any]:
    values = {
        "STOCKYARD_API_URL": settings.api_url.rstrip("/"),
        "STOCKYARD_CLUSTER_ID": settings.cluster_id,
        "STOCKYARD_TOKEN_URL": settings.token_url,
        "STOCKYARD_CLIENT_DIR": CLIENT,
        "PYTHONPATH": CODE,
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    own = {"POD_NAME": "metadata.name", "POD_NAMESPACE": "metadata.namespace"}
    return {
        "name": "agent",
        "image": settings.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-m", "stockyard_agent"],
        "env": [
            *({"name": name, "value": value} for name, value in values.items()),
            *({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in own.items()),
        ],
        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "code", "mountPath": f"{CODE}/stockyard_agent", "readOnly": True},
            {"name": "client", "mountPath": CLIENT, "readOnly": True},
        ],
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the manifest to standard output."""
    parser = argparse.ArgumentParser(
        prog="python -m agent.manifest", description="The manifest that installs the agent."
    )
    parser.add_argument("--api-url", required=True, help="of Stockyard, without /v1")
    parser.add_argument("--cluster-id", required=True)
    parser.add_argument("--token-url", required=True, help="the realm's token endpoint")
    parser.add_argument("--image", default=IMAGE, help="with Python 3.11 or newer (%(default)s)")
    options = parser.parse_args(arguments)
    sys.stdout.write(render(Settings(options.api_url, options.cluster_id, options.token_url, options.image)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
