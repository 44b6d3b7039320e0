"""Fields of accounts that are servers of a tenant's own: address, certificates, keys, and a site in their place."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, StringConstraints

from stockyard.domain.models.cloud_accounts import KEEP
from stockyard.domain.models.patterns import DNS_LABEL, worded

MOST_PEM = 16_384
_BASE64 = worded(r"^[A-Za-z0-9+/=]+$", "PEM in base64, as a kubeconfig has it")


def server(text: str) -> str:
    """The address of a server without its last slash. ``ValueError`` for one that is no plain https URL."""
    parts = urlsplit(text)
    if not parts.hostname or set(text) & set("@?#\\"):
        raise ValueError("must be https://, a host and perhaps a port and a path")
    try:
        is_port = parts.port != 0
    except ValueError:
        is_port = False
    if not is_port:
        raise ValueError("must have a port of 1 to 65535, or none")
    return text.rstrip("/")


def _is_pem(text: str, ends: str) -> bool:
    try:
        pem = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    is_whole = pem.lstrip().startswith(b"-----BEGIN ") and b"-----END " in pem
    return is_whole and pem.rstrip().endswith(f"{ends}-----".encode())


def _certificate(text: str) -> str:
    if not _is_pem(text, "CERTIFICATE"):
        raise ValueError("must be a certificate: PEM in base64, as a kubeconfig has it")
    return text


def _key(value: SecretStr) -> SecretStr:
    if value != KEEP and not (len(value.get_secret_value()) <= MOST_PEM and _is_pem(value.get_secret_value(), "KEY")):
        raise ValueError("must be a private key: PEM in base64, as a kubeconfig has it")
    return value


Certificate = Annotated[str, StringConstraints(max_length=MOST_PEM, pattern=_BASE64), AfterValidator(_certificate)]
PrivateKey = Annotated[
    SecretStr,
    AfterValidator(_key),
    Field(json_schema_extra={"minLength": 8, "maxLength": MOST_PEM, "pattern": _BASE64}),
]
SiteName = Annotated[str, StringConstraints(pattern=DNS_LABEL)]
