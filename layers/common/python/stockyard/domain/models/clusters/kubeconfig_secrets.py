"""The Secret with a cluster's kubeconfig that an agent keeps fresh: the request for it, and what the agent says."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from stockyard.domain.clusters.change import SecretChoice
from stockyard.domain.models import fields
from stockyard.domain.models.base import Input, View
from stockyard.domain.models.patterns import DNS_LABEL

Namespace = Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=DNS_LABEL)]


class KubeconfigSecretChoice(Input):
    """The Secret that is wanted. Its token is renewed every few minutes."""

    cluster: fields.Name | None = None
    """The cluster that it is to stand in, by its name; without one the cluster itself."""
    namespace: Namespace | None = None
    """The namespace there; without one that of the cluster's manifest, else ``default``."""
    role: Literal["viewer", "operator", "admin"] = "operator"
    """What its token may do. An administrator alone may ask for ``admin``."""

    def choice(self) -> SecretChoice:
        """The same as a value of the core."""
        return SecretChoice(self.cluster, self.namespace, self.role)


class SecretResult(Input):
    """The outcome of a Secret that the agent was to write or to remove."""

    namespace: Namespace
    """The namespace of the Secret."""
    name: Annotated[str, StringConstraints(min_length=1, max_length=253)]
    """The name of the Secret."""
    status: Literal["written", "removed", "failed"]
    """What became of it."""
    message: Annotated[str, StringConstraints(max_length=1_024)] = ""
    """Why it could not be done; empty where it was."""


class SecretsRequest(Input):
    """An agent asks for the Secrets that it keeps."""

    results: Annotated[list[SecretResult], Field(max_length=100)] = Field(default_factory=list)
    """What became of the ones before, where that is news."""
    refresh: bool = True
    """Whether the agent wants Secrets with new tokens; without it the results are all that it says."""


class SecretPlace(View):
    """A Secret that nobody asks for any more."""

    namespace: str
    """The namespace of the Secret."""
    name: str
    """The name of the Secret."""


class SecretsAnswer(View):
    """Secrets for an agent to write, and places of Secrets for it to remove."""

    secrets: list[dict[str, Any]]
    """Secrets of Kubernetes, each with a token that was made for this answer."""
    removed: list[SecretPlace]
    """The ones that are to go."""
    interval_seconds: int
    """How soon to come again, in seconds."""
