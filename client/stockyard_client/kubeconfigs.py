"""Kubeconfig files: reading what the API sends, and putting it into a person's own file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from stockyard_client.errors import StockyardClientError, UnexpectedAnswer
from stockyard_client.sessions import write_private

PROGRAM = "stockyard"
INSTALL_HINT = (
    "The command line of Stockyard gives kubectl its token. Install it (pip install ./client of Stockyard's"
    " repository), then write this entry anew: stockyard cluster kubeconfig CLUSTER"
)
"""What kubectl says where the command is not there."""
CREDENTIAL_VERSION = "client.authentication.k8s.io/v1"
_LISTS = ("clusters", "users", "contexts")
_DATA = {
    "clusters": ("cluster", frozenset({"server", "certificate-authority-data", "tls-server-name"})),
    "users": ("user", frozenset({"client-certificate-data", "client-key-data", "token"})),
}
"""What stored credentials consist of; anything else can run a program, or read a file, at the next ``kubectl``."""


def document(body: Any) -> dict[str, Any]:
    """The kubeconfig in an API answer: an object, a text, or either below ``kubeconfig``."""
    config = body.get("kubeconfig", body) if isinstance(body, dict) else body
    if isinstance(config, str):
        try:
            config = yaml.safe_load(config)
        except (yaml.YAMLError, ValueError, RecursionError):
            config = None
    if not isinstance(config, dict) or not all(_is_single(config.get(name)) for name in ("clusters", "users")):
        raise UnexpectedAnswer("the answer holds no kubeconfig of one cluster and one user")
    return config


def _is_single(entries: Any) -> bool:
    return isinstance(entries, list) and len(entries) == 1


def check_static(config: dict[str, Any]) -> None:
    """``UnexpectedAnswer`` when ``config``, which a cluster's machine has sent, holds more than credentials as data."""
    for name, (inner, allowed) in _DATA.items():
        for entry in config[name]:
            _check_fields(entry, frozenset({"name", inner}), name)
            _check_fields(entry.get(inner), allowed, name)
            if not all(isinstance(value, str) for value in entry[inner].values()):
                raise UnexpectedAnswer(f"the cluster's kubeconfig is refused: its {inner} holds more than texts")


def _check_fields(fields: Any, allowed: frozenset[str], section: str) -> None:
    if not isinstance(fields, dict):
        raise UnexpectedAnswer(f"the cluster's kubeconfig is refused: {section} holds an entry that is no object")
    if more := [key for key in fields if key not in allowed]:
        named = ", ".join(repr(key) for key in more)
        raise UnexpectedAnswer(
            f"the cluster's kubeconfig is refused: {section} has {named}, more than credentials as data"
        )


def default_path(environment: Mapping[str, str]) -> Path:
    """The first file of ``KUBECONFIG``, else ``~/.kube/config``."""
    first = environment.get("KUBECONFIG", "").split(os.pathsep)[0]
    return Path(first) if first else Path(environment.get("HOME", "~")).expanduser() / ".kube" / "config"


def for_person(
    config: dict[str, Any], name: str, url: str, tenant: str = "", command: Sequence[str] = (PROGRAM,)
) -> dict[str, Any]:
    """``config`` as it can stand beside others: its one cluster, user and context are called ``name``.

    A user that asks ``stockyard`` for tokens calls it by ``command``, and is told the API's ``url``, so that it finds
    the right login, and the ``tenant`` that somebody of the platform means.
    """
    variables = {"STOCKYARD_URL": url, **({"STOCKYARD_TENANT": tenant} if tenant else {})}
    adapted = {**config, "current-context": name}
    adapted["clusters"] = [{**entry, "name": name} for entry in config.get("clusters") or ()]
    adapted["users"] = [
        {**entry, "name": name, "user": _callable(entry.get("user") or {}, variables, command)}
        for entry in config.get("users") or ()
    ]
    adapted["contexts"] = [{"name": name, "context": {"cluster": name, "user": name}}]
    return adapted


def credential(answer: dict[str, Any]) -> dict[str, Any]:
    """The ExecCredential in an API answer, with nothing else. ``UnexpectedAnswer`` where there is none."""
    status = answer.get("status")
    texts = (
        {name: value for name, value in status.items() if isinstance(value, str)} if isinstance(status, dict) else {}
    )
    if answer.get("kind") != "ExecCredential" or not texts.get("token"):
        raise UnexpectedAnswer("the answer holds no token")
    fields = {name: texts[name] for name in ("token", "expirationTimestamp") if name in texts}
    return {"apiVersion": CREDENTIAL_VERSION, "kind": "ExecCredential", "status": fields}


def asks_api(config: dict[str, Any]) -> bool:
    """Whether the API itself gives out the tokens of the cluster's user: then people need no login to the cluster."""
    try:
        return "--cluster" in config["users"][0]["user"]["exec"]["args"]
    except (IndexError, KeyError, TypeError):
        return False


def login(config: dict[str, Any]) -> tuple[str, str]:
    """Issuer and client by which people log in to the cluster. Raises ``UnexpectedAnswer``."""
    try:
        arguments = config["users"][0]["user"]["exec"]["args"]
        return arguments[arguments.index("--issuer") + 1], arguments[arguments.index("--client-id") + 1]
    except (IndexError, KeyError, TypeError, ValueError):
        raise UnexpectedAnswer("the cluster's kubeconfig does not say how people log in") from None


def _callable(user: dict[str, Any], variables: Mapping[str, str], program: Sequence[str]) -> dict[str, Any]:
    """The user with what its call needs, wherever kubectl runs. One that does not ask ``stockyard`` stays."""
    plugin = user.get("exec") or {}
    if plugin.get("command") != PROGRAM:
        return user
    more = [variable for variable in plugin.get("env") or () if variable.get("name") not in variables]
    environment = [*more, *({"name": name, "value": value} for name, value in variables.items())]
    arguments = [*program[1:], *(plugin.get("args") or ())]
    call = {"command": program[0], "args": arguments, "env": environment, "installHint": INSTALL_HINT}
    return {**user, "exec": {**plugin, **call}}


def merge(old: dict[str, Any], new: dict[str, Any], *, use: bool = False) -> dict[str, Any]:
    """``old`` with the entries of ``new``, which win by name. Its current context is that of ``new`` where ``use`` asks
    for it, or there was none."""
    merged = {"apiVersion": "v1", "kind": "Config", **old}
    for name in _LISTS:
        entries = {entry["name"]: entry for entry in old.get(name) or []}
        entries.update({entry["name"]: entry for entry in new.get(name) or []})
        merged[name] = list(entries.values())
    if new.get("current-context") and (use or not old.get("current-context")):
        merged["current-context"] = new["current-context"]
    return merged


def write(path: Path, new: dict[str, Any], *, use: bool = False) -> str | None:
    """Merges ``new`` into the file at ``path`` (mode 0600), and returns its current context. Any other file is left
    alone, with an error."""
    old: Any = {}
    if path.exists():
        try:
            old = yaml.safe_load(path.read_text()) or {}
        except (yaml.YAMLError, UnicodeDecodeError):
            old = None
        if not isinstance(old, dict):
            raise StockyardClientError(f"{path} is not a kubeconfig; it was left as it is")
    merged = merge(old, new, use=use)
    write_private(path, dump(merged))
    return merged.get("current-context")


def dump(config: dict[str, Any]) -> str:
    """``config`` as YAML."""
    return yaml.safe_dump(config, sort_keys=False)
