"""Kubeconfig files: reading what the API sends, and putting it into a person's own file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from stockyard_client.errors import StockyardClientError, UnexpectedAnswer
from stockyard_client.sessions import write_private

_LISTS = ("clusters", "users", "contexts")


def document(body: Any) -> dict[str, Any]:
    """The kubeconfig in an API answer: an object, a text, or either below ``kubeconfig``."""
    found = body.get("kubeconfig", body) if isinstance(body, dict) else body
    if isinstance(found, str):
        try:
            found = yaml.safe_load(found)
        except yaml.YAMLError:
            found = None
    if not isinstance(found, dict) or any(len(found.get(name) or ()) != 1 for name in ("clusters", "users")):
        raise UnexpectedAnswer("the answer holds no kubeconfig of one cluster and one user")
    return found


def default_path(environment: Mapping[str, str]) -> Path:
    """The first file of ``KUBECONFIG``, else ``~/.kube/config``."""
    first = environment.get("KUBECONFIG", "").split(os.pathsep)[0]
    return Path(first) if first else Path(environment.get("HOME", "~")).expanduser() / ".kube" / "config"


def for_person(config: dict[str, Any], name: str, url: str) -> dict[str, Any]:
    """``config`` as it can stand beside others: its one cluster, user and context are called ``name``.

    A user that asks ``stockyard`` for tokens is told the API's ``url``, so that it finds the right login.
    """
    adapted = {**config, "current-context": name}
    adapted["clusters"] = [{**one, "name": name} for one in config.get("clusters") or ()]
    adapted["users"] = [
        {**one, "name": name, "user": _told(one.get("user") or {}, url)} for one in config.get("users") or ()
    ]
    adapted["contexts"] = [{"name": name, "context": {"cluster": name, "user": name}}]
    return adapted


def _told(user: dict[str, Any], url: str) -> dict[str, Any]:
    command = user.get("exec") or {}
    if command.get("command") != "stockyard":
        return user
    kept = [one for one in command.get("env") or () if one.get("name") != "STOCKYARD_URL"]
    return {**user, "exec": {**command, "env": [*kept, {"name": "STOCKYARD_URL", "value": url}]}}


def merge(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """``old`` with the entries of ``new``, which win by name, and its current context."""
    merged = {"apiVersion": "v1", "kind": "Config", **old}
    for name in _LISTS:
        entries = {one["name"]: one for one in old.get(name) or []}
        entries.update({one["name"]: one for one in new.get(name) or []})
        merged[name] = list(entries.values())
    if new.get("current-context"):
        merged["current-context"] = new["current-context"]
    return merged


def write(path: Path, new: dict[str, Any]) -> None:
    """Merges ``new`` into the file at ``path`` (mode 0600). Any other file is left alone, with an error."""
    old: Any = {}
    if path.exists():
        try:
            old = yaml.safe_load(path.read_text()) or {}
        except (yaml.YAMLError, UnicodeDecodeError):
            old = None
        if not isinstance(old, dict):
            raise StockyardClientError(f"{path} is not a kubeconfig; it was left as it is")
    write_private(path, dump(merge(old, new)))


def dump(config: dict[str, Any]) -> str:
    """``config`` as YAML."""
    return yaml.safe_dump(config, sort_keys=False)
