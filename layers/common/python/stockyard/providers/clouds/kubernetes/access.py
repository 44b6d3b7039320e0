"""The API of a tenant's Kubernetes host: the server is on the account's record, its credentials are sealed."""

from __future__ import annotations

import base64
import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from stockyard.domain.clusters import kubeconfigs
from stockyard.domain.records import CloudAccount, Cluster
from stockyard.domain.values import ids, times
from stockyard.errors import CredentialsRevoked
from stockyard.ports import Secrets
from stockyard.providers.addresses import Guard
from stockyard.providers.kubernetes.client import ClientCertificate, KubernetesApi

if TYPE_CHECKING:
    import httpx

TOKEN, CLIENT_KEY = "token", "client_key"
_MOST_CLIENTS = 64
_OF_SITE = "https://host.invalid"
"""Address of a host behind a site, whose connector knows another one."""
_AGAIN = "Change the account's attributes: give it again."


@dataclass(frozen=True, slots=True)
class Credentials:
    """The way into a host: a ``token``, certificate and key, or a ``site``."""

    server: str
    authority_b64: str | None
    """None where the way in is a site, whose connector knows the host."""
    token: str | None = field(default=None, repr=False)
    certificate_b64: str | None = None
    key_b64: str | None = field(default=None, repr=False)
    site: tuple[str, str] | None = None
    """The site that is the way in, by its tenant and its name; then nothing else is a secret here."""

    @property
    def ends_at(self) -> datetime | None:
        """End of the token or of the certificate; None where it has none, or does not tell."""
        if self.token is not None:
            return _end_of_token(self.token)
        return _end_of_certificate(self.certificate_b64 or "")


class Access:
    """``secrets`` is asked when a secret is needed. ``guard`` says where servers may be. ``site_transport`` is the way
    to a tenant's site, see ``ProviderTools``. ``transport`` replaces the network behind the guard."""

    def __init__(
        self,
        secrets: Callable[[], Secrets],
        guard: Guard,
        site_transport: Callable[[str, str], httpx.BaseTransport],
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._secrets, self._guard, self._transport = secrets, guard, transport
        self._site_transport = site_transport
        self._clients: OrderedDict[Credentials, KubernetesApi] = OrderedDict()

    def client(self, tenant: str, account: CloudAccount) -> KubernetesApi:
        """The API of the account's host. Raises ``CredentialsRevoked`` for an account without credentials."""
        return self._client_of(self.credentials(tenant, account))

    def host_client(self, tenant: str, cluster: Cluster) -> KubernetesApi:
        """The API of a cluster that Stockyard made, as its administrator. Raises ``CredentialsRevoked`` for one that
        has sent no kubeconfig."""
        return self._client_of(self._of_cluster(tenant, cluster))

    def _client_of(self, credentials: Credentials) -> KubernetesApi:
        # A client keeps its connection and what the server serves: it is used again as long as nothing changed.
        client = self._clients.pop(credentials, None) or self._client(credentials)
        self._clients[credentials] = client
        while len(self._clients) > _MOST_CLIENTS:
            self._clients.popitem(last=False)[1].close()
        return client

    def close(self) -> None:
        """Close the connections of all clients. A later call opens others."""
        while self._clients:
            self._clients.popitem()[1].close()

    def _client(self, credentials: Credentials) -> KubernetesApi:
        if credentials.site is not None:
            through_site = self._site_transport(*credentials.site)
            # The connector is waited for once: its workflow asks again.
            return KubernetesApi(credentials.server, None, lambda: "", through_site, attempts=1)
        token, certificate = credentials.token or "", None
        if credentials.key_b64 is not None:
            certificate = ClientCertificate(credentials.certificate_b64 or "", credentials.key_b64)
        return KubernetesApi(
            credentials.server,
            credentials.authority_b64,
            lambda: token,
            self._transport,
            certificate,
            guard=self._guard,
        )

    def credentials(self, tenant: str, account: CloudAccount) -> Credentials:
        """The way into the account's host. Raises ``CredentialsRevoked`` for one whose secrets are gone."""
        attributes = account.attributes
        if site := attributes.get("via"):
            return Credentials(_OF_SITE, None, site=(tenant, str(site)))
        server, authority = str(attributes.get("server")), str(attributes.get("certificate_authority"))
        certificate = attributes.get("client_certificate")
        if certificate:
            key = self._secret(tenant, account, CLIENT_KEY)
            return Credentials(server, authority, None, str(certificate), key)
        return Credentials(server, authority, self._secret(tenant, account, TOKEN))

    def _of_cluster(self, tenant: str, cluster: Cluster) -> Credentials:
        text = self._secrets().get(f"{tenant}/{cluster.id}/kubeconfig")
        if text is None or not cluster.endpoint:
            raise CredentialsRevoked(
                f"There is no kubeconfig of cluster {cluster.name}.",
                hint="Where its cloud admits people itself, register its server as an account, with a token.",
            )
        try:
            fields = kubeconfigs.check(text)
        except ValueError:
            raise CredentialsRevoked(f"The kubeconfig of cluster {cluster.name} cannot be read.") from None
        return Credentials(
            cluster.endpoint,
            fields.get("certificate-authority-data", ""),
            fields.get("token") or None,
            fields.get("client-certificate-data") or None,
            fields.get("client-key-data") or None,
        )

    def _secret(self, tenant: str, account: CloudAccount, name: str) -> str:
        value = self._secrets().get(ids.account_secret(tenant, account.id, name))
        if value is None:
            raise CredentialsRevoked(f"Cloud account {account.id} has no {name}.", hint=_AGAIN)
        return value


def _end_of_token(token: str) -> datetime | None:
    """End of a token of a service account, as it says itself; None for one that says none."""
    body = next(iter(token.split(".")[1:2]), "")
    try:
        claims = json.loads(base64.urlsafe_b64decode(f"{body}{'=' * (-len(body) % 4)}"))
    except (ValueError, RecursionError):
        return None
    end = claims.get("exp") if isinstance(claims, Mapping) else None
    try:
        return datetime.fromtimestamp(end, UTC) if isinstance(end, int | float) else None
    except (OverflowError, ValueError, OSError):
        return None


def _end_of_certificate(certificate_b64: str) -> datetime | None:
    try:
        end = kubeconfigs.expires_at({"client-certificate-data": certificate_b64})
    except ValueError:
        return None
    return None if end is None else times.from_text(end)
