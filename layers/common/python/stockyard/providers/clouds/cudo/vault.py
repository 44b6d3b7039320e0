"""A tenant's Vault over HTTPS: secret ids for machines, and the end of a key. Stockyard never sees a key.

Each call may be made twice: a secret id that nobody has unwrapped is of no use to anybody. The caller tries again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from stockyard.errors import (
    CredentialsRevoked,
    PermissionDenied,
    VendorError,
    VendorNotFound,
    VendorRefused,
    VendorThrottled,
    VendorTimeout,
    VendorUnavailable,
)
from stockyard.machines.data_disk import DiskKey
from stockyard.providers.addresses import Guard

if TYPE_CHECKING:
    import httpx


WRAP_SECONDS = 1800
"""How long a machine has to unwrap its secret id."""
SECONDS = 8.0
"""How long a step of one call may take."""
MOST_BYTES = 64 * 1024
"""Of an answer: the host is a tenant's choice."""
NO_VAULT = (
    "The cloud account has no Vault, where the key of the encrypted disk would be kept. Give the account "
    "vault_address, vault_role_id and vault_secret_id, or set no_vault."
)
"""Why a cluster with an encrypted disk is refused in an account without a Vault."""
LOGIN, SECRET_ID, METADATA = (
    "auth/approle/login",
    "auth/approle/role/{role}/secret-id",
    "secret/metadata/stockyard/{name}",
)
_ROLE_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,253}[A-Za-z0-9_])?")
_POLICY = "The AppRole needs the policy in Stockyard's documentation of the Vault."
_ERRORS: Mapping[tuple[str, int], tuple[type[VendorError], str, str]] = {
    (LOGIN, 400): (
        CredentialsRevoked,
        "The Vault refuses the role id or the secret id of the AppRole.",
        "Change the account's attributes: give vault_role_id and vault_secret_id again.",
    ),
    (LOGIN, 403): (
        CredentialsRevoked,
        "The Vault refuses the login of the AppRole.",
        "It must be allowed to log in from where Stockyard calls.",
    ),
    (LOGIN, 404): (
        VendorNotFound,
        "There is no AppRole login at auth/approle of the Vault.",
        "Check vault_address, and enable AppRole there.",
    ),
    (SECRET_ID, 400): (
        VendorRefused,
        "The Vault makes no secret id for a machine that lasts as long as the machine.",
        "The AppRole's secret_id_ttl and secret_id_num_uses must be 0, and bind_secret_id true.",
    ),
    (SECRET_ID, 403): (PermissionDenied, "The AppRole may not make secret ids of its own role.", _POLICY),
    (SECRET_ID, 404): (VendorNotFound, "The Vault has no AppRole of the name that its login told.", _POLICY),
    (METADATA, 403): (PermissionDenied, "The AppRole may not delete keys of disks.", _POLICY),
}
"""What an answer to a request means: the error, a sentence, and what a person can do."""
_STRICT = Guard()
_BY_STATUS: Mapping[int, tuple[type[VendorError], str]] = {
    408: (VendorTimeout, "The Vault did not answer in time."),
    412: (VendorUnavailable, "The Vault is not up to date yet."),
    429: (VendorThrottled, "The Vault is asked too often."),
    504: (VendorTimeout, "The Vault did not answer in time."),
}


@dataclass(frozen=True, slots=True)
class Vault:
    """The tenant's Vault, and the AppRole by which we ask it for wrapped secret ids."""

    address: str
    role_id: str
    secret_id: str = field(repr=False)


class VaultClient:
    """The Vault of an account, by its AppRole.

    The address is a tenant's choice, so what is called is what ``guard`` lets through. ``url`` is the operator's word:
    the Vault is asked there instead, without a look. ``transport`` replaces the network.
    """

    def __init__(
        self, vault: Vault, transport: httpx.BaseTransport | None = None, *, url: str = "", guard: Guard = _STRICT
    ) -> None:
        self._vault, self._transport, self._url, self._guard = vault, transport, url.rstrip("/"), guard

    def key_of_machine(self, client_id: str) -> DiskKey:
        """Key by which a new machine of the cluster opens its data disk. Raises as ``wrapped_secret_id`` does."""
        return DiskKey(self.address, self._vault.role_id, self.wrapped_secret_id(client_id), client_id)

    @property
    def address(self) -> str:
        """Address at which machines find the Vault."""
        return self._url or self._vault.address

    def check(self) -> None:
        """Whether the login works and machines can be given secret ids. Raises as the other methods do."""
        with self._client() as client:
            token, role = self._login(client)
            self._wrapped(client, token, role, "verification", seconds=60)

    def wrapped_secret_id(self, note: str) -> str:
        """The token by which one machine unwraps a secret id of its own, once and within ``WRAP_SECONDS``.

        ``note`` says in the Vault whose it is: the cluster. Raises ``CredentialsRevoked`` for a refused login,
        ``PermissionDenied`` for a policy that is too small, ``VendorRefused`` for a role that limits its secret ids,
        and retryable leaves where the Vault cannot be asked.
        """
        with self._client() as client:
            token, role = self._login(client)
            return self._wrapped(client, token, role, note, seconds=0)

    def forget_key(self, client_id: str) -> None:
        """Remove the key of a cluster's disk with all its versions: what is on the disk cannot be read any more. One
        that is gone is no error. Raises as ``wrapped_secret_id`` does."""
        with self._client() as client:
            token, _ = self._login(client)
            try:
                self._call(client, "DELETE", METADATA, token, name=client_id)
            except VendorNotFound:
                return

    def _login(self, client: httpx.Client) -> tuple[str, str]:
        body = {"role_id": self._vault.role_id, "secret_id": self._vault.secret_id}
        auth = _part(self._call(client, "POST", LOGIN, body=body), "auth")
        role = str(_part(auth, "metadata").get("role_name", ""))
        # The name becomes a part of a path.
        if not auth.get("client_token") or not _ROLE_NAME.fullmatch(role):
            raise VendorUnavailable("The Vault's answer to the login names no token and role.", code="login")
        return str(auth["client_token"]), role

    def _wrapped(self, client: httpx.Client, token: str, role: str, note: str, *, seconds: int) -> str:
        """``seconds``: how long the secret id is valid; 0 for ever. Both limits are written, because the role's own
        would hold otherwise, and a machine would not get in again after some time."""
        body = {"metadata": json.dumps({"cluster": note}), "num_uses": 0, "ttl": seconds}
        answer = self._call(client, "POST", SECRET_ID, token, body, wrapped=True, role=role)
        wrapping_token = _part(answer, "wrap_info").get("token")
        if not wrapping_token:
            raise VendorUnavailable("The Vault's answer is not wrapped.", code="wrap_info")
        return str(wrapping_token)

    def _call(
        self,
        client: httpx.Client,
        method: str,
        template: str,
        token: str = "",
        body: Mapping[str, Any] | None = None,
        *,
        wrapped: bool = False,
        **names: str,
    ) -> Mapping[str, Any]:
        path = template.format(**{key: quote(name, safe="") for key, name in names.items()})
        headers = {"Accept-Encoding": "identity", **({"X-Vault-Token": token} if token else {})}
        if wrapped:
            headers["X-Vault-Wrap-TTL"] = str(WRAP_SECONDS)
        status, content = self._sent(client, method, path, headers, body)
        if not 200 <= status < 300:
            raise _error(template, status)
        return _object(content)

    def _client(self) -> httpx.Client:
        import httpx  # kept out of cold starts

        from stockyard.providers.guarded_transport import GuardedTransport

        # Neither proxies nor names of the process's environment: it is the looked-at address that is called.
        transport: httpx.BaseTransport = self._transport or httpx.HTTPTransport(trust_env=False)
        if not self._url:
            transport = GuardedTransport(self._guard, transport)
        return httpx.Client(transport=transport, timeout=SECONDS, follow_redirects=False, trust_env=False)

    def _sent(
        self, client: httpx.Client, method: str, path: str, headers: Mapping[str, str], body: Mapping[str, Any] | None
    ) -> tuple[int, bytes]:
        """Status and content of the answer."""
        import httpx

        try:
            request = client.build_request(method, f"{self.address}/v1/{path}", headers=dict(headers), json=body)
            with closing(client.send(request, stream=True)) as answer:
                return answer.status_code, _limited(answer)
        except httpx.TimeoutException as error:
            kind = VendorUnavailable if isinstance(error, httpx.ConnectTimeout) else VendorTimeout
            text = "The Vault cannot be reached." if kind is VendorUnavailable else "The Vault did not answer in time."
            raise kind(text, code=type(error).__name__) from None
        except (httpx.InvalidURL, UnicodeError):  # the latter for a name that is none
            raise VendorRefused("The Vault's address is no URL.", code="address") from None
        except httpx.HTTPError as error:
            raise VendorUnavailable("The Vault cannot be reached.", code=type(error).__name__) from None


def _limited(answer: httpx.Response) -> bytes:
    if "Content-Encoding" in answer.headers:
        # A short answer may become a long one. Nobody asked for that.
        raise VendorUnavailable("The Vault's answer is compressed.", code=str(answer.status_code))
    content = b""
    for part in answer.iter_bytes(MOST_BYTES):
        content += part
        if len(content) > MOST_BYTES:
            raise VendorUnavailable("The Vault's answer is too long.", code=str(answer.status_code))
    return content


def _object(content: bytes) -> Mapping[str, Any]:
    try:
        document = json.loads(content) if content else {}
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise VendorUnavailable("The Vault's answer is no JSON object.", code="json")
    return document


def _part(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = document.get(name)
    return part if isinstance(part, dict) else {}


def _error(request: str, status: int) -> VendorError:
    """Error for an answer that is no success. Nothing of its own text is part of it."""
    code = str(status)
    if (request, status) in _ERRORS:
        kind, text, hint = _ERRORS[request, status]
        return kind(text, code=code, hint=hint)
    if status in _BY_STATUS:
        kind, text = _BY_STATUS[status]
        return kind(text, code=code)
    if status == 404:
        return VendorNotFound("The Vault has nothing there.", code=code)
    if status >= 500:
        return VendorUnavailable("The Vault cannot answer now; it may be sealed.", code=code)
    return VendorRefused(f"The Vault refuses with {status}.", code=code)
