"""The API of a tenant's head node: where it is stands on the account's record, the key of the certificate is sealed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from stockyard.domain.clusters import kubeconfigs
from stockyard.domain.records import CloudAccount
from stockyard.domain.values import ids, times
from stockyard.errors import CredentialsRevoked
from stockyard.ports import Secrets
from stockyard.providers.addresses import Guard
from stockyard.providers.clouds.bcm.client import HeadNode
from stockyard.providers.clouds.bcm.trust import Trust

if TYPE_CHECKING:
    import httpx

CLIENT_KEY = "client_key"
_MOST_CLIENTS = 64
_OF_SITE = "https://head-node.invalid"
"""Address of a head node behind a site, whose connector knows another one."""


class Access:
    """``secrets`` is asked when a key is needed. ``guard`` says where endpoints may be. ``site_transport`` is the way
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
        self._clients: OrderedDict[tuple[object, ...], HeadNode] = OrderedDict()

    def client(self, tenant: str, account: CloudAccount) -> HeadNode:
        """The API of the account's head node. Raises ``CredentialsRevoked`` for an account whose key is gone."""
        attributes = account.attributes
        if site := attributes.get("via"):
            key: tuple[object, ...] = (tenant, str(site))
            return self._client(key, lambda: HeadNode(_OF_SITE, None, self._site_transport(tenant, str(site))))
        secret = self._secrets().get(ids.account_secret(tenant, account.id, CLIENT_KEY))
        if secret is None:
            text = f"Cloud account {account.id} has no {CLIENT_KEY}."
            raise CredentialsRevoked(text, hint="Change the account's attributes: give it again.")
        endpoint = str(attributes.get("endpoint"))
        trust = Trust(
            attributes.get("certificate_authority"),
            attributes.get("fingerprint"),
            str(attributes.get("client_certificate")),
            secret,
        )
        return self._client((endpoint, trust), lambda: HeadNode(endpoint, trust, self._transport, self._guard))

    def _client(self, key: tuple[object, ...], make: Callable[[], HeadNode]) -> HeadNode:
        # A client keeps its connection and what the page says: it is used again as long as nothing changed.
        client = self._clients.pop(key, None) or make()
        self._clients[key] = client
        while len(self._clients) > _MOST_CLIENTS:
            self._clients.popitem(last=False)[1].close()
        return client

    def close(self) -> None:
        """Close the connections of all clients. A later call opens others."""
        while self._clients:
            self._clients.popitem()[1].close()


def inventory_of(attributes: Mapping[str, Any]) -> str:
    """The head node of an account, by its endpoint or its site: a host is leased once there, whatever accounts lead
    to it."""
    site, endpoint = attributes.get("via"), str(attributes.get("endpoint") or "")
    return f"site-{site}" if site else endpoint.removeprefix("https://").lower().replace("/", "-")


def ends_at(account: CloudAccount) -> datetime | None:
    """Moment when the account's client certificate ends; None where a site has it, or it does not tell."""
    try:
        end = kubeconfigs.expires_at({"client-certificate-data": str(account.attributes.get("client_certificate"))})
    except ValueError:
        return None
    return None if end is None else times.from_text(end)
