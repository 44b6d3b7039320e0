"""The API of a cluster in memory, for drivers that apply objects to theirs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stockyard.errors import VendorError, VendorNotFound
from stockyard.providers.kubernetes.client import ClientCertificate

Objects = dict[tuple[str, str, str], Mapping[str, Any]]
"""By kind, namespace and name."""


class MemoryKubernetes:
    """A cluster's API. ``asked`` are the addresses and authorities that clients were made for, ``users`` what each was
    known by, ``tokens`` the accounts that tokens were given of, with the seconds, and ``closed`` the closed clients."""

    def __init__(self) -> None:
        self.objects: Objects = {}
        self.asked: list[tuple[str, str]] = []
        self.users: list[str | ClientCertificate] = []
        self.tokens: list[tuple[str, str, int]] = []
        self.closed = 0
        self.token: Callable[[], str] = lambda: ""
        self.error: VendorError | None = None

    def client(
        self, server: str, authority: str, token: Callable[[], str], certificate: ClientCertificate | None = None
    ) -> Any:
        """The client of the cluster at that address."""
        self.asked.append((server, authority))
        self.users.append(certificate or token())
        self.token = token
        return self

    def apply(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """See ``KubernetesApi.apply``."""
        self._fail()
        meta = document["metadata"]
        self.objects[document["kind"], meta.get("namespace", ""), meta["name"]] = document
        return document

    def account_token(self, namespace: str, name: str, seconds: int) -> str:
        """See ``KubernetesApi.account_token``. An account that is not there has none."""
        self._fail()
        if ("ServiceAccount", namespace, name) not in self.objects:
            raise VendorNotFound(f"there is no account {name}", code="404 NotFound")
        self.tokens.append((namespace, name, seconds))
        return f"token-{len(self.tokens)}"

    def list(self, _api_version: str, kind: str, *, labels: str = "") -> list[Mapping[str, Any]]:
        """See ``KubernetesApi.list``."""
        self._fail()
        name, _, value = labels.partition("=")
        return [
            document
            for key, document in self.objects.items()
            if key[0] == kind and (not labels or document["metadata"].get("labels", {}).get(name) == value)
        ]

    def delete(self, _api_version: str, kind: str, name: str, namespace: str = "") -> None:
        """See ``KubernetesApi.delete``."""
        self._fail()
        self.objects.pop((kind, namespace, name), None)

    def close(self) -> None:
        """See ``KubernetesApi.close``."""
        self.closed += 1

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error
