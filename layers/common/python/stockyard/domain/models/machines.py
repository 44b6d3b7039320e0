"""What control planes send before and after they have a token, and what they get."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, SecretStr, StringConstraints, model_validator

from stockyard.domain import kubeconfigs
from stockyard.domain.models.base import Input, View, not_null

Method = Literal["GET", "POST"]
Url = Annotated[str, StringConstraints(min_length=1, max_length=8_192, pattern=r"^https?://[!-~]+$")]
Headers = Annotated[dict[str, Annotated[str, StringConstraints(max_length=4_096)]], Field(max_length=32)]


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

    @model_validator(mode="after")
    def _one_proof(self) -> Self:
        proof = self.model_fields_set & {*_SIGNED, "token"}
        if proof not in ({"token"}, set(_SIGNED)) or any(getattr(self, name) is None for name in proof):
            raise ValueError(f"must have {', '.join(_SIGNED)}, or token, and not both")
        return self

    def proof(self) -> dict[str, Any]:
        """What proves which machine it is: the token or the signed request."""
        if self.token is not None:
            return {"token": self.token.get_secret_value()}
        return self.model_dump(include=set(_SIGNED))


class BootstrapProof(MachineProof):
    """What proves a control plane's machine: where its cloud gives it keys a request that it signs, elsewhere the token
    of its user data."""


Kubeconfig = Annotated[SecretStr, Field(min_length=1, max_length=65_536), AfterValidator(_harmless)]
"""It holds its credentials as data: what would run a program or read a file is refused."""
CertificateAuthority = Annotated[str, StringConstraints(min_length=1, max_length=32_768)]


class ReadyReport(Input):
    """The report of a control plane that is up. ``certificate_authority`` is the cluster CA's certificate.

    The kubeconfig holds its credentials as data: what would run a program or read a file is refused.
    """

    kubeconfig: Kubeconfig
    certificate_authority: CertificateAuthority
    proof: BootstrapProof | None = None
    """Of a cluster that is ready: only with it the recorded machine's renewed kubeconfig is taken."""


class BootStep(Input):
    """A step of a machine's first boot: it begins, or, with ``exit``, it has failed and these were the last lines."""

    step: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z-]{0,31}$")]
    exit: Annotated[int, Field(ge=1, le=255)] | None = None
    lines: Annotated[str, StringConstraints(max_length=4_096)] = ""


class ControlPlaneBootReport(BootstrapProof, BootStep):
    """What a control plane's machine says of its first boot, with the proof of ``/bootstrap``."""


class SnapshotResult(Input):
    """How a member's snapshot of etcd went: with ``failure`` it is not in the store."""

    id: Annotated[str, StringConstraints(pattern=r"^[0-9]{8}T[0-9]{6}Z$")]
    revision: Annotated[int, Field(ge=0, le=2**63 - 1)] | None = None
    size: Annotated[int, Field(ge=0, le=2**53 - 1)] | None = None
    failure: Annotated[str, StringConstraints(max_length=512)] = ""


class SnapshotReport(MachineProof):
    """A member of a control plane asks whether a snapshot of etcd is due, or says how the last one went."""

    report: SnapshotResult | None = None


class DueSnapshot(View):
    """The snapshot that the machine is to take: by these programs, and to that place, where its role may write."""

    id: str
    bucket: str
    region: str
    key: str
    programs: dict[str, str]


class SnapshotAnswer(View):
    """What is due now, or null."""

    due: DueSnapshot | None


class BootstrapAnswer(View):
    """The control plane's own client, where it gets tokens, and the API endpoint's stable name.

    ``machine_endpoint`` is the API as the cluster's machines know it, empty where that is ``endpoint``.
    ``certificate_names`` is what its certificate has to name besides. ``renewal_token`` proves the machine from now on,
    empty where it signs requests. ``certificate_key`` seals the authorities for further members of the control plane.
    """

    client_id: str
    client_secret: str
    token_url: str
    endpoint: str
    machine_endpoint: str
    certificate_names: list[str]
    renewal_token: str
    certificate_key: str


class AgentManifest(View):
    """A ``List`` of Kubernetes objects as ``kubectl apply -f`` takes it. There is no secret in it."""

    api_version: Literal["v1"] = Field("v1", alias="apiVersion")
    kind: Literal["List"] = "List"
    items: list[dict[str, Any]]


class Accepted(View):
    """The report was kept."""

    status: Literal["accepted"] = "accepted"


class HealthView(View):
    """The API answers."""

    status: Literal["ok"] = "ok"
