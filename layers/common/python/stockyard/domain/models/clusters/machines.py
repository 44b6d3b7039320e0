"""Bodies of control planes' requests before and after there is a token, and of the answers."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    SecretStr,
    StringConstraints,
    model_validator,
)

from stockyard.domain.clusters import kubeconfigs
from stockyard.domain.models.base import Input, View, not_null

Method = Literal["GET", "POST"]
"""The method of the signed request."""
Url = Annotated[str, StringConstraints(min_length=1, max_length=8_192, pattern=r"^https?://[!-~]+$")]
"""The address of the signed request, with its signature."""
Headers = Annotated[dict[str, Annotated[str, StringConstraints(max_length=4_096)]], Field(max_length=32)]
"""The header fields of the signed request."""


def _harmless(kubeconfig: SecretStr) -> SecretStr:
    kubeconfigs.check(kubeconfig.get_secret_value())
    return kubeconfig


_SIGNED = ("method", "url", "headers")


class SignedProof(Input):
    """A presigned ``sts:GetCallerIdentity`` request that binds our host by a signed header."""

    method: Method
    url: Url
    headers: Headers


class MachineProof(Input):
    """One of two proofs: a presigned ``sts:GetCallerIdentity`` request that binds our host by a signed header, or the
    token that the machine was given."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": list(_SIGNED), "not": {"required": ["token"]}},
                {"required": ["token"], "not": {"anyOf": [{"required": [name]} for name in _SIGNED]}},
            ]
        }
    )

    method: Method | None = Field(None, json_schema_extra=not_null)
    url: Url | None = Field(None, json_schema_extra=not_null)
    headers: Headers | None = Field(None, json_schema_extra=not_null)
    token: Annotated[SecretStr, Field(min_length=32, max_length=256)] | None = Field(None, json_schema_extra=not_null)
    """The token of the machine's user data."""

    @model_validator(mode="after")
    def _one_proof(self) -> Self:
        proof = self.model_fields_set & {*_SIGNED, "token"}
        if proof not in ({"token"}, set(_SIGNED)) or any(getattr(self, name) is None for name in proof):
            raise ValueError(f"must have {', '.join(_SIGNED)}, or token, and not both")
        return self

    def proof(self) -> dict[str, Any]:
        """Proof of the machine's identity: the token or the signed request."""
        if self.token is not None:
            return {"token": self.token.get_secret_value()}
        return self.model_dump(include=set(_SIGNED))


OverlayKey = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$")]
"""The public key of a machine in its cluster's overlay, as WireGuard writes it. The private key never leaves it."""


def _ipv4(text: str) -> str:
    return str(IPv4Address(text))


LocalAddress = Annotated[str, StringConstraints(max_length=15), AfterValidator(_ipv4)]


class OverlayRequest(Input):
    """Part of a machine's request: key and address for a place in an overlay."""

    overlay_key: OverlayKey | None = Field(None, json_schema_extra=not_null)
    """The machine's public key; needed where the cluster has an overlay."""
    overlay_local: LocalAddress | None = Field(None, json_schema_extra=not_null)
    """The machine's address in its own network, where others of that network find it."""


class OverlayPeer(View):
    """A machine of an overlay, for the others."""

    address: str
    """Its address in the overlay."""
    key: str
    """Its public key."""
    hub: bool = False
    """Whether others may send through it."""
    endpoints: list[str] = Field(default_factory=list)
    """Where a hub is reached, the best first: host and UDP port."""


class OverlayPlace(View):
    """Place of a machine in the overlay of its cluster."""

    address: str
    """Its address."""
    range: str
    """The range of the overlay: the lower half has the addresses, the upper half stands for direct paths."""
    hub: bool
    """Whether others may send through it."""
    peers: list[OverlayPeer]
    """The hubs that it begins with; all others it reads in the cluster."""
    programs: dict[str, str]
    """The programs that keep the overlay, by the name of the file."""


class BootstrapProof(MachineProof):
    """Proof of identity of a control plane's machine: where its cloud gives it keys a request that it signs, elsewhere
    the token of its user data."""


class BootstrapRequest(BootstrapProof, OverlayRequest):
    """Proof of identity of a control plane's first machine, and by what others know it in the cluster's overlay."""


Kubeconfig = Annotated[SecretStr, Field(min_length=1, max_length=65_536), AfterValidator(_harmless)]
"""A kubeconfig as YAML. It holds its credentials as data: what would run a program or read a file is refused."""
CertificateAuthority = Annotated[str, StringConstraints(min_length=1, max_length=32_768)]
"""The certificate of the cluster's certificate authority, as PEM."""


class ReadyReport(Input):
    """The report of a control plane that is up. ``certificate_authority`` is the cluster CA's certificate.

    The kubeconfig holds its credentials as data: what would run a program or read a file is refused.
    """

    kubeconfig: Kubeconfig
    certificate_authority: CertificateAuthority
    """The certificate of the cluster's certificate authority, as PEM."""
    proof: BootstrapProof | None = None
    """Of a cluster that is ready: only with it the recorded machine's renewed kubeconfig is taken."""


class BootStep(Input):
    """A step of a machine's first boot: it begins, or it has failed."""

    step: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z-]{0,31}$")]
    """The name of the step."""
    exit: Annotated[int, Field(ge=1, le=255)] | None = None
    """The exit code of a step that has failed; null while it runs."""
    lines: Annotated[str, StringConstraints(max_length=4_096)] = ""
    """The last lines that the step wrote."""


class ControlPlaneBootReport(BootstrapProof, BootStep):
    """Report of a control plane's machine about its first boot, with the proof of ``/bootstrap``."""


class SnapshotResult(Input):
    """Result of a member's snapshot of etcd."""

    id: Annotated[str, StringConstraints(pattern=r"^[0-9]{8}T[0-9]{6}Z$")]
    """The id of the snapshot that was due."""
    revision: Annotated[int, Field(ge=0, le=2**63 - 1)] | None = None
    """The revision of etcd that it shows; null when it failed."""
    size: Annotated[int, Field(ge=0, le=2**53 - 1)] | None = None
    """Its size in bytes; null when it failed."""
    failure: Annotated[str, StringConstraints(max_length=512)] = ""
    """Why it is not in the store; empty when it is."""


class SnapshotReport(MachineProof):
    """A member of a control plane asks whether a snapshot of etcd is due, or says how the last one went."""

    report: SnapshotResult | None = None
    """How the last snapshot went; null asks what is due."""


class DueSnapshot(View):
    """The snapshot that the machine is to take: by these programs, and to that place, where its role may write."""

    id: str
    """The id that the snapshot is to have."""
    bucket: str
    """The bucket that it goes to."""
    region: str
    """The region of the bucket."""
    key: str
    """Its key in the bucket."""
    programs: dict[str, str]
    """The programs that take it, by the name of the file."""


class SnapshotAnswer(View):
    """Snapshot that is due now."""

    due: DueSnapshot | None
    """The snapshot that is due now; null for none."""


class BootstrapAnswer(View):
    """The control plane's own client, where it gets tokens, and by what names its API is known."""

    client_id: str
    """The control plane's own client."""
    client_secret: str
    """The secret of that client."""
    token_url: str
    """Where the client gets its tokens."""
    endpoint: str
    """The stable address of the cluster's API."""
    machine_endpoint: str
    """The address by which the cluster's machines know it; empty where that is ``endpoint``."""
    certificate_names: list[str]
    """What the certificate of the API has to name besides."""
    renewal_token: str
    """Proves the machine from now on; empty where it signs requests."""
    certificate_key: str
    """Seals the authorities for further members of the control plane."""
    overlay: OverlayPlace | None = None
    """The machine's place in the cluster's overlay; null for a cluster without one."""


class AgentManifest(View):
    """A ``List`` of Kubernetes objects as ``kubectl apply -f`` takes it. There is no secret in it."""

    api_version: Literal["v1"] = Field("v1", alias="apiVersion")
    """The version of the list's form."""
    kind: Literal["List"] = "List"
    """The kind of the list."""
    items: list[dict[str, Any]]
    """The objects, in the order in which they have to be made."""


class Accepted(View):
    """The report was kept."""

    status: Literal["accepted"] = "accepted"
    """Always ``accepted``."""


class HealthView(View):
    """The API answers."""

    status: Literal["ok"] = "ok"
    """Always ``ok``."""
