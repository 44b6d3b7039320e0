"""The attributes of a cloud account that is a Kubernetes host."""

from __future__ import annotations

import re
from typing import Annotated, Self

from pydantic import AfterValidator, Field, SecretStr, StringConstraints, model_validator

from stockyard.domain.models import fields
from stockyard.domain.models.base import Fault, Input, Irremovable, check
from stockyard.domain.models.patterns import DNS_LABEL, worded
from stockyard.domain.models.server_fields import Certificate, PrivateKey, SiteName, server
from stockyard.providers.clouds.kubernetes.features import BASE, CAPACITY, FEATURES, KUBEVIRT

CREDENTIALS = ("token", "client_key", "via")
"""The attributes one of which is the way in."""
MOST_NAMESPACES = 20
_TOKEN = re.compile(r"[!-~]{8,8192}")
_SERVER = worded(r"^https://[!-~]{1,480}$", "the address of an API server, https://<host>")


def _token(value: SecretStr) -> SecretStr:
    if not _TOKEN.fullmatch(value.get_secret_value()):
        raise ValueError("must have 8 to 8192 printable ASCII characters without spaces")
    return value


def _feature(name: str) -> str:
    if name not in FEATURES:
        raise ValueError(f"must be {' or '.join(FEATURES)}")
    return name


def _of_machines(names: list[str]) -> list[str]:
    """Refuses a look at the host's room where no machines are made by it."""
    if CAPACITY in names and KUBEVIRT not in names:
        raise ValueError(f"{CAPACITY} counts room for virtual machines: it goes with {KUBEVIRT}")
    return names


Server = Annotated[str, StringConstraints(pattern=_SERVER), AfterValidator(server)]
Token = Annotated[
    SecretStr,
    AfterValidator(_token),
    Field(json_schema_extra={"minLength": 8, "maxLength": 8192, "pattern": "^[!-~]+$"}),
]
Namespaces = Annotated[
    list[Annotated[str, StringConstraints(pattern=DNS_LABEL)]],
    Field(min_length=1, max_length=MOST_NAMESPACES),
    AfterValidator(fields.distinct),
]
Features = Annotated[
    list[Annotated[str, AfterValidator(_feature), Field(json_schema_extra={"enum": list(FEATURES)})]],
    Field(min_length=1, max_length=len(FEATURES)),
    AfterValidator(fields.distinct),
    AfterValidator(_of_machines),
]


class KubernetesAttributes(Input):
    """The API of a cluster, and the credentials of a service account or a user there; or a site whose connector has
    both."""

    server: Server | None = None
    """The address of the API server."""
    certificate_authority: Certificate | None = None
    """The certificate of the authority that the API server is known by, PEM in base64."""
    namespaces: Namespaces
    """The namespaces in which machines may be made; Stockyard asks for rights in no other."""
    token: Token | None = None
    """The token of a service account; it is kept sealed and never shown."""
    client_certificate: Certificate | None = None
    """The certificate of a user, instead of a token: PEM in base64."""
    client_key: PrivateKey | None = None
    """The key of the user's certificate, PEM in base64; it is kept sealed and never shown."""
    via: SiteName | None = None
    """The name of a site, instead of a server: its connector knows the host and adds the credentials."""
    features: Features = Field(default_factory=lambda: [BASE])
    """Kinds of machines that the account is for: each needs rights of its own."""

    @model_validator(mode="after")
    def _one_credential(self) -> Self:
        credentials = [name for name in CREDENTIALS if getattr(self, name) is not None]
        faults: list[Fault] = []
        if not credentials:
            faults.append((("token",), "this field is required, unless there is client_key or via"))
        faults += [((name,), f"cannot be given beside {credentials[0]}: one is the way in") for name in credentials[1:]]
        of_server = ("server", "certificate_authority")
        if credentials == ["via"]:
            beside = (*of_server, "client_certificate")
            text = "cannot be given beside via: the site's connector knows it"
            faults += [((name,), text) for name in beside if getattr(self, name) is not None]
        else:
            faults += [((name,), "this field is required") for name in of_server if getattr(self, name) is None]
            if (self.client_key is None) != (self.client_certificate is None):
                lacking = "client_certificate" if self.client_certificate is None else "client_key"
                faults.append(((lacking,), "a certificate and its key go together"))
        check(faults)
        return self


class KubernetesAttributesPatch(Input):
    """Changed attributes; one that is absent stays. Another server needs its credentials again: what was sealed for one
    is never sent to another."""

    server: Server | None = None
    """The address of the API server."""
    certificate_authority: Certificate | None = None
    """The certificate of the authority that the API server is known by, PEM in base64."""
    namespaces: Irremovable[Namespaces] = None
    """The namespaces in which machines may be made, all of them."""
    token: Token | None = None
    """The token of a service account; null where there is another way in."""
    client_certificate: Certificate | None = None
    """The certificate of a user; null where there is another way in."""
    client_key: PrivateKey | None = None
    """The key of the user's certificate; null where there is another way in."""
    via: SiteName | None = None
    """The name of a site; null where there is another way in."""
    features: Irremovable[Features] = None
    """Kinds of machines that the account is for, all of them."""

    @model_validator(mode="after")
    def _credentials_of_another_server(self) -> Self:
        moved = [name for name in ("server", "certificate_authority") if getattr(self, name) is not None]
        if moved and self.token is None and self.client_key is None:
            check([((moved[0],), "another server needs token, or client_certificate and client_key, again")])
        return self
