"""A kubeconfig as the attributes of an account: server, authority, and the credentials of one context's user."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stockyard_client.cli.documents.bad_input import BadInput

_PROGRAMS = ("exec", "auth-provider", "username", "password", "impersonate", "as")
"""Ways of users that work on the caller's machine alone, or that no API server of today takes."""


def host_attributes(path: Path, context: str | None) -> dict[str, Any]:
    """The attributes that the file gives, by their names; those of its current context where none is named. Raises
    ``BadInput`` where it has none that work elsewhere."""
    import yaml  # kept out of each start

    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise BadInput(f"{path} is no YAML") from None
    if not isinstance(document, Mapping):
        raise BadInput(f"{path} is no kubeconfig")
    name = context or document.get("current-context")
    if not name:
        raise BadInput(f"{path} has no current context: give --context")
    chosen_context = _entry(path, document, "contexts", str(name))
    cluster = _entry(path, document, "clusters", str(chosen_context.get("cluster")))
    user = _entry(path, document, "users", str(chosen_context.get("user")))
    if cluster.get("insecure-skip-tls-verify"):
        raise BadInput("its cluster is not known by an authority, which Stockyard needs: certificate-authority-data")
    attributes: dict[str, Any] = {
        "server": cluster.get("server"),
        "certificate_authority": _data(path, cluster, "certificate-authority"),
        **_credentials(path, user),
    }
    if chosen_context.get("namespace"):
        attributes["namespaces"] = [str(chosen_context["namespace"])]
    return {key: value for key, value in attributes.items() if value is not None}


def _credentials(path: Path, user: Mapping[str, Any]) -> dict[str, Any]:
    token = user.get("token") or (_text(path, user["tokenFile"]).strip() if user.get("tokenFile") else None)
    if token:
        return {"token": str(token)}
    certificate, key = _data(path, user, "client-certificate"), _data(path, user, "client-key")
    if certificate and key:
        return {"client_certificate": certificate, "client_key": key}
    used = next((name for name in _PROGRAMS if user.get(name)), None)
    text = f"its user logs in by {used}, which works here alone" if used else "its user has no token and no certificate"
    raise BadInput(
        f"{text}: make a service account by `stockyard account template`, and give a kubeconfig with its token"
    )


def _entry(path: Path, document: Mapping[str, Any], kind: str, name: str) -> Mapping[str, Any]:
    entries = document.get(kind)
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, Mapping) and entry.get("name") == name:
            inner = entry.get(kind.removesuffix("s"))
            return inner if isinstance(inner, Mapping) else {}
    raise BadInput(f"{path} has no {name} in {kind}")


def _data(path: Path, fields: Mapping[str, Any], name: str) -> str | None:
    """PEM in base64: written in the kubeconfig, or in a file that it names."""
    if fields.get(f"{name}-data"):
        return str(fields[f"{name}-data"])
    if not fields.get(name):
        return None
    return base64.b64encode(_text(path, fields[name]).encode()).decode()


def _text(path: Path, name: Any) -> str:
    """Content of a file that the kubeconfig names, as seen from its own folder."""
    file = path.parent / str(name)
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise BadInput(f"{file}, which {path} names, cannot be read") from None
