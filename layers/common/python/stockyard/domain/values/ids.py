"""Identifiers: a prefix for the kind, and a ULID of a time and 80 random bits. The caller passes both."""

from __future__ import annotations

import hashlib
from datetime import datetime

from stockyard.domain.values.patterns import pattern

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_SKEW = 60_000
"""Milliseconds that two clocks may differ."""
_ID = pattern(r"^(clu|op|ncl|ntp|npr|spr|cpr|nev|lgr|evt|aud|out|cmd|sit|run|osi)_[0-9A-HJKMNP-TV-Z]{26}$")

CLUSTER, OPERATION, EVENT, AUDIT, OUTBOX = "clu", "op", "evt", "aud", "out"
NODE_CLAIM, NODE_TYPE, NODE_PROVIDER, NODE_ENVIRONMENT, COMMAND = "ncl", "ntp", "npr", "nev", "cmd"
LAUNCH_GROUP, SHARED_PROVIDER, CLUSTER_PROFILE = "lgr", "spr", "cpr"
SITE, RUN, OS_IMAGE = "sit", "run", "osi"
POOL_REQUEST = "plr"
"""Of the request that made a pool; nobody sees it."""


def ulid(moment: datetime, randomness: bytes) -> str:
    """26 characters of Crockford base 32: 48 bits of milliseconds, then ``randomness`` (10 bytes)."""
    if len(randomness) != 10:
        raise ValueError("a ULID needs 10 random bytes")
    number = (int(moment.timestamp() * 1000) << 80) | int.from_bytes(randomness, "big")
    return _letters(number, 26)


def _letters(number: int, count: int) -> str:
    return "".join(_ALPHABET[(number >> shift) & 31] for shift in range(5 * (count - 1), -5, -5))


def make(prefix: str, moment: datetime, randomness: bytes) -> str:
    """A new identifier, such as ``clu_01J...``. Identifiers of one prefix sort by time."""
    return f"{prefix}_{ulid(moment, randomness)}"


def derive(prefix: str, parent: str, *parts: str) -> str:
    """An identifier derived from others: the time of ``parent``, and 80 bits of the SHA-256 of it and ``parts``.

    The same input always gives the same identifier, so that a repeated creation finds the first one.
    """
    moment = parent.rpartition("_")[2][:10]
    digest = hashlib.sha256("\x00".join((parent, *parts)).encode()).digest()
    number = int.from_bytes(digest[:10], "big")
    return f"{prefix}_{moment}{_letters(number, 16)}"


def lower_bound(prefix: str, identifier: str) -> str:
    """A text that sorts before every identifier of ``prefix`` that is not older than ``identifier``.

    Identifiers up to a minute older are included, because the clocks of their creators may differ.
    """
    milliseconds = 0
    for letter in identifier.rpartition("_")[2][:10]:
        milliseconds = milliseconds << 5 | _ALPHABET.index(letter)
    return f"{prefix}_{_letters(max(0, milliseconds - _SKEW), 10)}"


def before(prefix: str, moment: datetime) -> str:
    """A text that sorts after all identifiers of ``prefix`` older than ``moment``, and before all others."""
    return f"{prefix}_{_letters(int(moment.timestamp() * 1000), 10)}"


def is_id(text: str) -> bool:
    """Whether ``text`` has the form of an identifier. A name never does: it has no underscore."""
    return _ID.match(text) is not None


def client_id(tenant: str, cluster_id: str, name: str) -> str:
    """The cluster's Keycloak client and the stem of its AWS names: at most 46 characters.

    The lower-cased name cut to 33 characters, a dash, 12 hex digits of sha256(tenant, cluster id), so that it is
    unique in a realm that all tenants share.
    """
    digest = hashlib.sha256(f"{tenant}\x00{cluster_id}".encode()).hexdigest()[:12]
    return f"{name.lower()[:33]}-{digest}"


def login_client(client_id: str) -> str:
    """The client that people log in to a cluster with, beside the cluster's own; the audience of their tokens there."""
    return f"{client_id}-login"


ACCOUNT_SECRETS = "cloud-account-"
"""How the names of cloud accounts' secrets begin, after the tenant. Names of clusters' secrets begin otherwise."""


def account_secret(tenant: str, number: str, name: str) -> str:
    """The name of a cloud account's secret, see ``ports.Secrets``."""
    return f"{tenant}/{ACCOUNT_SECRETS}{number}/{name}"


def environment_secret(tenant: str, environment_id: str, suffix: str) -> str:
    """The name of the secret outputs of a node environment; its record has the suffix."""
    return f"{tenant}/{environment_id}/outputs-{suffix}"


def account_sheet(number: str) -> str:
    """The id of the record with what a cloud account was last offered."""
    return f"account-{number}"
