"""Cudo's API through a tenant's account: the project is on its record, the key is sealed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

from stockyard.domain.records import CloudAccount
from stockyard.domain.values import ids
from stockyard.errors import CredentialsRevoked
from stockyard.ports import Secrets
from stockyard.providers.addresses import Guard
from stockyard.providers.clouds.cudo.client import BASE_URL, Cudo
from stockyard.providers.clouds.cudo.vault import Vault, VaultClient

if TYPE_CHECKING:
    import httpx

API_KEY, VAULT_SECRET_ID = "api_key", "vault_secret_id"
"""Names of an account's secrets."""
_MOST_CLIENTS = 64
_STRICT = Guard()


class Access:
    """``secrets`` is asked when a key is needed. ``vault_url``: where every account's Vault is asked instead of at its
    own address, which ``guard`` has to let through. ``transport`` and ``vault_transport`` replace the network."""

    def __init__(
        self,
        secrets: Callable[[], Secrets],
        base_url: str = BASE_URL,
        transport: httpx.BaseTransport | None = None,
        *,
        vault_url: str = "",
        guard: Guard = _STRICT,
        vault_transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._secrets, self._base_url, self._transport = secrets, base_url, transport
        self._vault_url, self._vault_transport = vault_url, vault_transport
        self._guard = guard
        self._clients: OrderedDict[tuple[str, str], Cudo] = OrderedDict()

    def client(self, tenant: str, account: CloudAccount) -> Cudo:
        """The API of the account's project. Raises ``CredentialsRevoked`` for an account without a key."""
        key = self._secret(tenant, account, API_KEY)
        project = str(account.attributes.get("project_id") or "")
        if not project:
            raise CredentialsRevoked(f"Cloud account {account.id} names no project.", hint="Register it again.")
        # A client keeps its connection: it is used again as long as it is the same key.
        client = self._clients.pop((key, project), None) or Cudo(
            key, project, base_url=self._base_url, transport=self._transport
        )
        self._clients[key, project] = client
        while len(self._clients) > _MOST_CLIENTS:
            self._clients.popitem(last=False)[1].close()
        return client

    def vault(self, tenant: str, account: CloudAccount) -> Vault | None:
        """The account's Vault; None when it has none."""
        address = account.attributes.get("vault_address")
        if not address:
            return None
        role_id = str(account.attributes["vault_role_id"])
        return Vault(str(address), role_id, self._secret(tenant, account, VAULT_SECRET_ID))

    def vault_client(self, tenant: str, account: CloudAccount) -> VaultClient | None:
        """The account's Vault by its AppRole; None when it has none. Raises ``CredentialsRevoked`` for an account whose
        secret id is gone."""
        vault = self.vault(tenant, account)
        if vault is None:
            return None
        transport, url = self._vault_transport, self._vault_url
        return VaultClient(vault, transport, url=url, guard=self._guard)

    def _secret(self, tenant: str, account: CloudAccount, name: str) -> str:
        value = self._secrets().get(ids.account_secret(tenant, account.id, name))
        if value is None:
            raise CredentialsRevoked(
                f"Cloud account {account.id} has no {name}.", hint="Change the account's attributes: give it again."
            )
        return value
