"""Kinds of text and number that several inputs share."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, Field, SecretStr, StringConstraints

from stockyard.domain import cloud_kinds
from stockyard.domain.models import patterns
from stockyard.domain.models.base import Fault, check, repeated
from stockyard.domain.values import times
from stockyard.domain.values.pointers import pointer
from stockyard.errors import FieldProblem, InvalidInput

_LABEL_VALUE = re.compile(patterns.LABEL_VALUE[1:-1])
_LABEL_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*")
_TAG = re.compile(r"[\w .:/=+@-]*")
_SECRET = re.compile(r"[!-~]{24,32}")
_RESERVED_TAGS = ("stockyard:", "kubernetes.io/")
MAX_TAGS = 30


def _secret(value: SecretStr) -> SecretStr:
    if not _SECRET.fullmatch(value.get_secret_value()):
        raise ValueError("must have 24 to 32 printable ASCII characters without spaces")
    return value


def label_key_fault(key: str) -> str | None:
    """Fault of a Kubernetes label or taint key, or None."""
    prefix, slash, name = key.rpartition("/")
    if not _LABEL_NAME.fullmatch(name):
        return "the name of a key has 1 to 63 letters, digits, - _ . and starts and ends with a letter or digit"
    if slash and (len(prefix) > 253 or not _SUBDOMAIN.fullmatch(prefix)):
        return "the prefix of a key is a DNS subdomain of at most 253 characters"
    return None


def key_faults(named: Iterable[str]) -> list[Fault]:
    """Faults of keys of labels or taints."""
    return [((key,), fault) for key in named if (fault := label_key_fault(key))]


def subdomain(name: str) -> str:
    if len(name) > 253 or not _SUBDOMAIN.fullmatch(name):
        raise ValueError("is a DNS subdomain: at most 253 lower-case letters, digits, - and .")
    return name


def _label_key(key: str) -> str:
    fault = label_key_fault(key)
    if fault:
        raise ValueError(fault)
    return key


def _label_value(value: str) -> str:
    if not _LABEL_VALUE.fullmatch(value):
        raise ValueError("has at most 63 letters, digits, - _ . and starts and ends with a letter or digit")
    return value


def checked_keys(named: dict[str, Any]) -> dict[str, Any]:
    """Refuses what is no key of a label."""
    check(key_faults(named))
    return named


def tag_key_fault(key: str) -> str | None:
    """Fault of the key of a tag, or None."""
    if not 1 <= len(key) <= 128 or not _TAG.fullmatch(key):
        return "a tag's key has 1 to 128 letters, digits, spaces and . : / = + @ _ -"
    clouds = cloud_kinds.clouds().values()
    reserved = (*_RESERVED_TAGS, *(prefix for cloud in clouds for prefix in cloud.reserved_tags))
    if key == "Name" or key.lower().startswith(reserved):
        return (
            f"this tag is set by {' or '.join(['Stockyard', *(cloud.title for cloud in clouds)])} and cannot be given"
        )
    return None


def _tag_value(value: str) -> str:
    if len(value) > 256 or not _TAG.fullmatch(value):
        raise ValueError("a tag's value has at most 256 letters, digits, spaces and . : / = + @ _ -")
    return value


def tag_faults(tags: dict[str, str]) -> list[Fault]:
    """Faults of the keys and of their number."""
    faults: list[Fault] = [((), f"at most {MAX_TAGS} tags")] if len(tags) > MAX_TAGS else []
    return faults + [((key,), fault) for key in tags if (fault := tag_key_fault(key))]


def _tags(tags: dict[str, str]) -> dict[str, str]:
    check(tag_faults(tags))
    return tags


def settled_tags(current: dict[str, str], patch: dict[str, str | None] | None) -> dict[str, str]:
    """``current`` after a JSON merge patch; None removes all. Raises ``InvalidInput`` below ``/tags``."""
    merged = {**current, **patch} if patch is not None else {}
    tags = {key: value for key, value in merged.items() if value is not None}
    problems = [FieldProblem(pointer("tags", *path), detail) for path, detail in tag_faults(tags)]
    if problems:
        raise InvalidInput.of(problems)
    return tags


def _cidr(text: str) -> str:
    try:
        network = ipaddress.IPv4Network(text, strict=False)
    except ValueError:
        raise ValueError("must be an IPv4 range such as 203.0.113.0/24") from None
    if str(network) != text:
        raise ValueError(f"must be written as the range itself, {network}")
    return text


def distinct(items: list[Any]) -> list[Any]:
    """Refuses an item that is listed twice."""
    check(repeated(items, "is listed twice"))
    return items


def no_nul(text: str) -> str:
    if "\x00" in text:
        raise ValueError("must not have a NUL character")
    return text


_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


def _moment(text: str) -> str:
    """The time as records have it. ``ValueError`` for what is no time of RFC 3339."""
    try:
        moment = datetime.fromisoformat(text.upper()) if _RFC_3339.fullmatch(text) else None
        if moment is not None:
            return times.to_text(moment)
    except (ValueError, OverflowError):
        pass
    raise ValueError("must be a time with an offset, such as 2026-12-24T18:00:00Z")


Name = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=patterns.NAME)]
"""1 to 128 letters, digits, hyphens, starting and ending with a letter or digit."""
Description = Annotated[str, StringConstraints(max_length=1024, pattern=patterns.PLAIN_TEXT)]
"""Free text for people."""
NotEmptyDescription = Annotated[str, StringConstraints(min_length=1, max_length=1024, pattern=patterns.PLAIN_TEXT)]
"""Free text for people, of one character at least."""
ClientSecret = Annotated[
    SecretStr,
    AfterValidator(_secret),
    Field(json_schema_extra={"minLength": 24, "maxLength": 32, "pattern": "^[!-~]{24,32}$"}),
]
"""The secret of the cluster's Keycloak client, 24 to 32 printable characters. One is made when none is given."""
Cidr = Annotated[
    str, StringConstraints(max_length=18), AfterValidator(_cidr), Field(json_schema_extra={"pattern": patterns.CIDR})
]
"""A range of IPv4 addresses such as ``203.0.113.0/24``."""
Cidrs = Annotated[list[Cidr], Field(max_length=20, json_schema_extra={"uniqueItems": True}), AfterValidator(distinct)]
ExpiresAt = Annotated[
    str,
    StringConstraints(max_length=40),
    AfterValidator(_moment),
    Field(json_schema_extra={"format": "date-time"}),
]
"""When its deletion begins by itself, as RFC 3339 has times: ``2026-12-24T18:00:00Z``, or with an offset such as
``+01:00``."""
KeepFailed = Annotated[int, Field(ge=0, le=1440)]
"""Minutes for which a machine is kept that did not come up, at most a day. It is billed meanwhile."""
Subdomain = Annotated[str, AfterValidator(subdomain)]
TypeName = Annotated[str, StringConstraints(min_length=1, max_length=63), AfterValidator(subdomain)]
"""Of a node type: a DNS subdomain that is also the value of a label, ``t3.medium`` for example."""
LabelKey = Annotated[str, StringConstraints(min_length=1, max_length=317), AfterValidator(_label_key)]
LabelValue = Annotated[
    str,
    StringConstraints(max_length=63),
    AfterValidator(_label_value),
    Field(json_schema_extra={"pattern": patterns.LABEL_VALUE}),
]
Labels = Annotated[dict[str, LabelValue], Field(max_length=64), AfterValidator(checked_keys)]
"""Labels of Kubernetes: keys with an optional DNS prefix, values of at most 63 characters."""
TagValue = Annotated[str, StringConstraints(max_length=256), AfterValidator(_tag_value)]
Tags = Annotated[dict[str, TagValue], AfterValidator(_tags), Field(json_schema_extra={"maxProperties": MAX_TAGS})]
"""Tags by key, at most 30. What is made in the cloud carries them too."""
