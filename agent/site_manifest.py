"""The texts that install a site's connector, rendered from its code: objects for Kubernetes, or a script for systemd.

No secret is in them. Beside them the site's owner installs the client's credentials, the allow-list, and the credential
of the host; without a list the connector carries out nothing.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from agent.manifest import IMAGE, LIMIT
from agent.roles import Document, document

__all__ = ["IMAGE", "NAME", "Settings", "render"]

NAME = "stockyard-site"
"""Of the namespace and of all objects in it, of the unit and of the folders."""
CODE = f"/opt/{NAME}"
CLIENT = f"/var/run/{NAME}"
ETC = f"/etc/{NAME}"
_USER = 65532
_SOURCES = Path(__file__).parent
_SHARED = ("__init__.py", "api_calls.py", "pacing.py", "process.py", "transport.py")
"""Modules of the cluster agent that the connector is made of besides its own."""
_HOST = ("SITE_SERVER", "SITE_AUTHORITY", "SITE_FINGERPRINT", "SITE_TOKEN", "SITE_CERTIFICATE", "SITE_KEY")


@dataclass(frozen=True, slots=True)
class Settings:
    """Addresses that the connector speaks to, and its site. ``image`` needs Python 3.11 or newer, and no packages."""

    api_url: str
    site_id: str
    token_url: str
    image: str = IMAGE

    def environment(self) -> dict[str, str]:
        """Variables that both forms set."""
        return {
            "STOCKYARD_API_URL": self.api_url.rstrip("/"),
            "STOCKYARD_SITE_ID": self.site_id,
            "STOCKYARD_TOKEN_URL": self.token_url,
            "PYTHONPATH": CODE,
            "PYTHONDONTWRITEBYTECODE": "1",
        }


def render(settings: Settings, form: str) -> str:
    """The text of the form ``kubernetes`` or ``systemd``. Raises ``ValueError`` for one that is too large."""
    text = _kubernetes(settings) if form == "kubernetes" else _systemd(settings)
    if len(text.encode()) > LIMIT:
        raise ValueError(f"the manifest has {len(text.encode())} bytes, over {LIMIT}")
    return text


def sources() -> dict[str, str]:
    """The connector's modules: the path below the folder of the code -> text."""
    shared = [_SOURCES / "stockyard_agent" / name for name in _SHARED]
    paths = [*shared, *sorted((_SOURCES / "stockyard_site").glob("*.py"))]
    modules = {f"agent/{path.relative_to(_SOURCES)}": path.read_text(encoding="utf-8") for path in paths}
    return {"agent/__init__.py": "", **modules}


def _kubernetes(settings: Settings) -> str:
    security = {
        "pod-security.kubernetes.io/enforce": "restricted",
        "pod-security.kubernetes.io/enforce-version": "latest",
    }
    code = {path.replace("/", "."): text for path, text in sources().items()}
    items = [
        document("v1", "Namespace", NAME, "", labels=security),
        document("v1", "ServiceAccount", NAME, NAME, automountServiceAccountToken=False),
        document("v1", "ConfigMap", f"{NAME}-code", NAME, data=code),
        _deployment(settings),
    ]
    return "\n---\n".join(json.dumps(item, indent=1) for item in items) + "\n"


def _deployment(settings: Settings) -> Document:
    labels = {"app.kubernetes.io/name": NAME}
    digest = hashlib.sha256(json.dumps(sources(), sort_keys=True).encode()).hexdigest()
    items = [{"key": path.replace("/", "."), "path": path} for path in sources()]
    template = {
        "metadata": {"labels": labels, "annotations": {"stockyard.dev/code": digest}},
        "spec": {
            "serviceAccountName": NAME,
            "automountServiceAccountToken": True,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 5,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": _USER,
                "runAsGroup": _USER,
                "fsGroup": _USER,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [_container(settings)],
            "volumes": [
                {"name": "code", "configMap": {"name": f"{NAME}-code", "items": items}},
                {"name": "client", "secret": {"secretName": NAME, "defaultMode": 0o440}},
                # Without it the pod does not start: nobody has said what it may do.
                {"name": "allowed", "configMap": {"name": f"{NAME}-allowed"}},
                {"name": "host", "secret": {"secretName": f"{NAME}-host", "defaultMode": 0o440, "optional": True}},
            ],
        },
    }
    spec = {"replicas": 1, "strategy": {"type": "Recreate"}, "selector": {"matchLabels": labels}, "template": template}
    return document("apps/v1", "Deployment", NAME, NAME, spec=spec)


def _container(settings: Settings) -> dict[str, Any]:
    values = {**settings.environment(), "STOCKYARD_CLIENT_DIR": CLIENT, "SITE_ALLOWED_DIR": ETC}
    # Without this Secret the host is the cluster that the pod is in, and the credential its service account.
    host = {"secretRef": {"name": f"{NAME}-host-settings", "optional": True}}
    return {
        "name": "connector",
        "image": settings.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-m", "agent.stockyard_site"],
        "env": [{"name": name, "value": value} for name, value in values.items()],
        "envFrom": [host],
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "128Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "code", "mountPath": CODE, "readOnly": True},
            {"name": "client", "mountPath": CLIENT, "readOnly": True},
            {"name": "allowed", "mountPath": ETC, "readOnly": True},
            {"name": "host", "mountPath": "/var/run/stockyard-site-host", "readOnly": True},
        ],
    }


def _systemd(settings: Settings) -> str:
    """A script that writes the code, an example of the settings, and the unit. It may run again."""
    values = {**settings.environment(), "STOCKYARD_CLIENT_DIR": f"{ETC}/client", "SITE_ALLOWED_DIR": ETC}
    lines = [
        "#!/bin/sh",
        "# Installs the connector of a site as a systemd service. Run it as root; a second run upgrades.",
        "set -eu",
        'ROOT="${ROOT:-}"',
        f'mkdir -p "$ROOT{CODE}/agent/stockyard_agent" "$ROOT{CODE}/agent/stockyard_site" "$ROOT{ETC}/client"',
        f'mkdir -p "$ROOT{ETC}/host" "$ROOT/etc/systemd/system"',
        'if [ -z "$ROOT" ]; then',
        f"  getent passwd {NAME} >/dev/null || useradd --system --user-group --no-create-home {NAME}",
        f"  chgrp -R {NAME} {ETC} && chmod -R g+rX,g-w,o-rwx {ETC}",
        "fi",
    ]
    for path, text in sources().items():
        lines += _file(f"{CODE}/{path}", text)
    host = "".join(f"# {name}=\n" for name in _HOST)
    text = "".join(f"{name}={value}\n" for name, value in values.items())
    lines += _file(f"{ETC}/stockyard.env", text)
    lines += [f'if [ ! -e "$ROOT{ETC}/host.env" ]; then', *_file(f"{ETC}/host.env", host), "fi"]
    lines += _file(f"/etc/systemd/system/{NAME}.service", _UNIT)
    lines += [
        'if [ -z "$ROOT" ]; then systemctl daemon-reload; fi',
        f"echo 'Next: {ETC}/client/client_id and client_secret, {ETC}/allowed, {ETC}/host.env, then'",
        f"echo '  systemctl enable --now {NAME}'",
    ]
    return "\n".join(lines) + "\n"


def _file(path: str, text: str) -> list[str]:
    """Lines of a script that write the file. The text is quoted as one word, so that nothing of it is read."""
    return [f'printf %s {quote(text)} > "$ROOT{path}"']


_UNIT = f"""[Unit]
Description=Connector of a Stockyard site
Wants=network-online.target
After=network-online.target

[Service]
EnvironmentFile={ETC}/stockyard.env
EnvironmentFile={ETC}/host.env
ExecStart=/usr/bin/python3 -m agent.stockyard_site
Restart=always
RestartSec=5
User={NAME}
Group={NAME}
CapabilityBoundingSet=
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
MemoryMax=128M

[Install]
WantedBy=multi-user.target
"""
