"""The attributes of a cloud account that is a head node."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import AfterValidator, StringConstraints, model_validator

from stockyard.domain.models.base import Fault, Input, check
from stockyard.domain.models.patterns import worded
from stockyard.domain.models.server_fields import Certificate, PrivateKey, SiteName, server

_ENDPOINT = worded(r"^https://[!-~]{1,400}$", "the address of a head node, https://<host>:8081")
_FINGERPRINT = worded(r"^[0-9A-Fa-f]{2}(:?[0-9A-Fa-f]{2}){31}$", "64 hex digits: SHA-256 of the server's certificate")
PINS = ("certificate_authority", "fingerprint")
"""The attributes by one of which the head node is known."""
_OF_DIRECT = ("endpoint", *PINS, "client_certificate", "client_key")


def _origin(text: str) -> str:
    text = server(text)
    if text.count("/") != 2:
        raise ValueError("must have no path")
    return text


def _digits(text: str) -> str:
    return text.replace(":", "").lower()


Endpoint = Annotated[str, StringConstraints(pattern=_ENDPOINT), AfterValidator(_origin)]
Fingerprint = Annotated[str, StringConstraints(pattern=_FINGERPRINT), AfterValidator(_digits)]


class BcmAttributes(Input):
    """A head node and a client certificate that it knows; or a site whose connector has both."""

    endpoint: Endpoint | None = None
    """The address of the head node, with its port: `https://head:8081`."""
    certificate_authority: Certificate | None = None
    """The certificate of the authority that the head node is known by, PEM in base64; its certificate has to name the
    host of the endpoint."""
    fingerprint: Fingerprint | None = None
    """Instead of an authority the SHA-256 of the head node's own certificate, in hex: head nodes sign theirs
    themselves."""
    client_certificate: Certificate | None = None
    """The client certificate that the head node knows (`admin.pem`), PEM in base64."""
    client_key: PrivateKey | None = None
    """The key of the client certificate (`admin.key`), PEM in base64; it is kept sealed and never shown."""
    via: SiteName | None = None
    """The name of a site, instead of all others: its connector knows the head node and has the certificate."""

    @model_validator(mode="after")
    def _one_credential(self) -> Self:
        there = [name for name in _OF_DIRECT if getattr(self, name) is not None]
        faults: list[Fault] = []
        if self.via is not None:
            text = "cannot be given beside via: the site's connector knows it"
            faults += [((name,), text) for name in there]
        else:
            needed = ("endpoint", "client_certificate", "client_key")
            text = "this field is required, unless there is via"
            faults += [((name,), text) for name in needed if name not in there]
            pins = [name for name in PINS if name in there]
            if not pins:
                faults.append(((PINS[0],), "give the head node's authority, or its fingerprint"))
            faults += [((name,), f"cannot be given beside {pins[0]}") for name in pins[1:]]
        check(faults)
        return self


class BcmAttributesPatch(Input):
    """Changed attributes; one that is absent stays. Another endpoint, authority or fingerprint needs the certificate
    and its key again: what was sealed for one head node is never shown to another."""

    endpoint: Endpoint | None = None
    """The address of the head node."""
    certificate_authority: Certificate | None = None
    """The certificate of the head node's authority; null where there is a fingerprint."""
    fingerprint: Fingerprint | None = None
    """The SHA-256 of the head node's certificate; null where there is an authority."""
    client_certificate: Certificate | None = None
    """The client certificate; null where there is a site."""
    client_key: PrivateKey | None = None
    """The key of the client certificate; null where there is a site."""
    via: SiteName | None = None
    """The name of a site; null where there is an endpoint."""

    @model_validator(mode="after")
    def _credentials_of_another_server(self) -> Self:
        moved = [name for name in ("endpoint", *PINS) if getattr(self, name) is not None]
        if moved and self.client_key is None:
            check([((moved[0],), "another head node needs client_certificate and client_key again")])
        return self
