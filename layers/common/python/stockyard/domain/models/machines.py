"""What control planes send before and after they have a token, and what they get."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, SecretStr, StringConstraints

from stockyard.domain import kubeconfigs
from stockyard.domain.models.base import Input, View

Method = Literal["GET", "POST"]
Url = Annotated[str, StringConstraints(min_length=1, max_length=8_192, pattern=r"^https?://[!-~]+$")]
Headers = Annotated[dict[str, Annotated[str, StringConstraints(max_length=4_096)]], Field(max_length=32)]


def _harmless(kubeconfig: SecretStr) -> SecretStr:
    kubeconfigs.check(kubeconfig.get_secret_value())
    return kubeconfig


class BootstrapProof(Input):
    """A presigned ``sts:GetCallerIdentity`` request that binds our host by a signed header."""

    method: Method
    url: Url
    headers: Headers


class ReadyReport(Input):
    """The report of a control plane that is up. ``certificate_authority`` is the cluster CA's certificate.

    The kubeconfig holds its credentials as data: what would run a program or read a file is refused.
    """

    kubeconfig: Annotated[SecretStr, Field(min_length=1, max_length=65_536), AfterValidator(_harmless)]
    certificate_authority: Annotated[str, StringConstraints(min_length=1, max_length=32_768)]
    proof: BootstrapProof | None = None
    """Of a cluster that is ready: only with it the recorded machine's renewed kubeconfig is taken."""


class BootStep(Input):
    """A step of a machine's first boot: it begins, or, with ``exit``, it has failed and these were the last lines."""

    step: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z-]{0,31}$")]
    exit: Annotated[int, Field(ge=1, le=255)] | None = None
    lines: Annotated[str, StringConstraints(max_length=4_096)] = ""


class ControlPlaneBootReport(BootstrapProof, BootStep):
    """What a control plane's machine says of its first boot, with the proof of ``/bootstrap``."""


class BootstrapAnswer(View):
    """The control plane's own client, where it gets tokens, and the API endpoint's stable name."""

    client_id: str
    client_secret: str
    token_url: str
    endpoint: str


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
