"""The kubeconfig that a machine sends: credentials as data, and nothing that runs a program or reads a file.

Anybody with the secret of a cluster's own client can send one, and an admin's ``kubectl`` obeys it: ``exec``, for
example, runs any command on the admin's machine. So the allowed fields are listed and all others are refused.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING

from stockyard.domain.values import times

if TYPE_CHECKING:
    from yaml import Node

MAX_DEPTH, MAX_PARTS = 8, 500
_TOP = frozenset({"apiVersion", "kind", "preferences", "clusters", "users", "contexts", "current-context"})
_FIELDS = {
    "users": ("user", frozenset({"client-certificate-data", "client-key-data", "token"})),
    "clusters": ("cluster", frozenset({"server", "certificate-authority-data", "tls-server-name"})),
}


def check(text: str) -> dict[str, str]:
    """The fields of its one user and its one cluster. ``ValueError`` unless that is all there is, with listed fields.

    The error's text names allowed fields, and never contains what was sent.
    """
    import yaml  # only the report of a machine needs a parser

    try:
        _check_bounds(text)
        # Only YAML nodes are read: no value is constructed, and duplicate names can be detected.
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        # the parser's own words would repeat parts of the text
        raise ValueError("must be one document of YAML") from None
    top = _mapping(root, "the kubeconfig", _TOP)
    values: dict[str, str] = {}
    for name, (inner, allowed) in _FIELDS.items():
        entries = top.get(name)
        if not isinstance(entries, yaml.SequenceNode) or len(entries.value) != 1:
            raise ValueError(f"must hold exactly one entry in {name}")
        entry = _mapping(entries.value[0], f"the entry in {name}", frozenset({"name", inner}))
        fields = _mapping(entry.get(inner), f"its {inner}", allowed)
        if not all(isinstance(value, yaml.ScalarNode) for value in fields.values()):
            raise ValueError(f"must hold nothing but texts in its {inner}")
        values |= {name: str(value.value) for name, value in fields.items()}
    return values


def expires_at(fields: Mapping[str, str]) -> str | None:
    """End of the user's certificate, as RFC 3339 text; None for a user without one. ``ValueError`` for no PEM."""
    encoded = fields.get("client-certificate-data")
    if not encoded:
        return None
    from cryptography import x509  # only the report of a machine needs it

    return times.to_text(x509.load_pem_x509_certificate(base64.b64decode(encoded)).not_valid_after_utc)


def _check_bounds(text: str) -> None:
    """Check depth, size and absence of aliases first, because composing is recursive."""
    import yaml

    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
        if isinstance(event, yaml.AliasEvent):
            raise ValueError("must hold no alias")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise ValueError(f"must not be nested deeper than {MAX_DEPTH} levels")
        if count > MAX_PARTS:
            raise ValueError("must not be longer than a kubeconfig of one cluster and one user")


def _mapping(node: Node | None, path: str, allowed: frozenset[str]) -> dict[str, Node]:
    import yaml

    if not isinstance(node, yaml.MappingNode):
        raise ValueError(f"must be a kubeconfig: {path} is no object")
    names = [key.value if isinstance(key, yaml.ScalarNode) else None for key, _ in node.value]
    if len(set(names)) < len(names) or not allowed.issuperset(names):
        raise ValueError(f"must have nothing but {', '.join(sorted(allowed))} in {path}, each once")
    return {key.value: value for key, value in node.value}
