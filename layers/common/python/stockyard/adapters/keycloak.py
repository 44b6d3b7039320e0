"""The clients of a Keycloak realm (``ports.Identity``).

python-keycloak is imported where it is used: it costs every cold start that does not need it a quarter of a second.
"""

from __future__ import annotations

import json
import secrets as random_secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from stockyard.adapters.keycloak_clients import (
    SERVICE,
    SERVICE_CLIENT,
    attributes,
    cluster_client,
    confidential,
    login_client,
    owner_of,
    view,
)
from stockyard.domain.values import ids
from stockyard.errors import (
    PermissionDenied,
    VendorConflict,
    VendorError,
    VendorNotFound,
    VendorRefused,
    VendorThrottled,
    VendorTimeout,
    VendorUnavailable,
)
from stockyard.ports import IdentityClient

_ATTEMPTS = 3
_SECONDS = 10
_PAGE = 200
_MARGIN = 30.0
_TRANSIENT = (VendorTimeout, VendorUnavailable, VendorThrottled)

T = TypeVar("T")


@dataclass(slots=True)
class _Session:
    """An admin API object with its token, until the token is about to expire."""

    admin: Any
    ends_at: float


class Keycloak:
    """``ports.Identity`` over the admin API of the realm that ``issuer`` names.

    Clients are marked with ``installation``; those of another installation are someone else's.
    ``read_secret`` gives the text of a secret by name; that of ``admin_secret`` is ``{"client_id", "client_secret"}``
    of a client with the role ``manage-clients``. It may name an own ``service_client_id`` and
    ``service_client_secret``; otherwise a service client without any role is made in the realm. The admin client's
    own token never leaves this class.
    """

    def __init__(
        self,
        issuer: str,
        audience: str,
        *,
        installation: str,
        read_secret: Callable[[str], str],
        admin_secret: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        base, separator, realm = issuer.rstrip("/").rpartition("/realms/")
        if not separator or not realm:
            raise ValueError(f"the issuer {issuer!r} is not that of a Keycloak realm")
        if not installation:
            raise ValueError("without an installation every client would look like ours")
        self._installation = installation
        self._base, self._realm, self._audience = base, realm, audience
        self._read_secret, self._admin_secret = read_secret, admin_secret
        self._clock = clock
        self._session: _Session | None = None
        self._service: tuple[float, str] | None = None

    def create_client(
        self, *, client_id: str, owner: str, tenant: str, secret: str, people: bool = True
    ) -> IdentityClient:
        """Make the client, or adopt it when it is ``owner``'s (its secret is set anew); else ``VendorConflict``."""
        desired = cluster_client(
            client_id,
            installation=self._installation,
            owner=owner,
            tenant=tenant,
            secret=secret,
            audience=self._audience,
        )
        login = login_client(client_id, installation=self._installation, owner=owner)
        client = self._retried(lambda: self._create(desired))
        if people:
            self._retried(lambda: self._create(login))
        return client

    def find_client(self, client_id: str) -> IdentityClient | None:
        """The client, or None. ``owner`` is empty when it is not ours."""
        client = self._retried(lambda: self._search(client_id))
        return view(client, self._installation) if client is not None else None

    def client_secret(self, client_id: str) -> str:
        """The current secret. ``VendorNotFound`` when the client is gone."""
        return self._retried(lambda: self._secret_of(client_id))

    def delete_client(self, *, client_id: str, owner: str, uuid: str | None = None) -> bool:
        """Delete if owned by ``owner``, with ``uuid`` only that very one; see ``ports.Identity.delete_client``.

        What people log in with goes first: as long as it is there, so is the client by which it is found.
        """
        if uuid is None or self._retried(lambda: self._is_very(client_id, uuid)):
            self._retried(lambda: self._delete(ids.login_client(client_id), owner, None))
        return self._retried(lambda: self._delete(client_id, owner, uuid))

    def owned_clients(self) -> Sequence[IdentityClient]:
        """Every client that carries this installation's ownership attributes, read page by page; of a cluster's two its
        own."""
        clients: list[IdentityClient] = []
        first = 0
        while True:
            page = self._retried(lambda start=first: self._page(first=start, max=_PAGE))  # type: ignore[misc]
            clients.extend(view(client, self._installation) for client in page if owner_of(client, self._installation))
            if len(page) < _PAGE:
                own = {client.client_id for client in clients}
                logins = {ids.login_client(name) for name in own}
                return [client for client in clients if client.client_id not in logins]
            first += _PAGE

    def service_token(self) -> str:
        """An access token of Stockyard's own service account, kept until shortly before it expires.

        It is not meant for Stockyard's API (no audience, no tenant) and has no roles, because vdeployers see it.
        """
        if self._service is not None and self._clock() < self._service[0]:
            return self._service[1]
        answer = self._retried(lambda: self._token(*self._service_credentials()))
        token = str(answer["access_token"])
        self._service = (self._clock() + float(answer["expires_in"]) - _MARGIN, token)
        return token

    # --- one try of each ---------------------------------------------------------------------------------------------

    def _create(self, desired: Mapping[str, Any]) -> IdentityClient:
        try:
            with self._calling() as admin:
                uuid = admin.create_client(dict(desired))
        except VendorConflict:
            return self._adopt(desired)
        return view({**desired, "id": uuid}, self._installation)

    def _adopt(self, desired: Mapping[str, Any]) -> IdentityClient:
        client_id = str(desired["clientId"])
        client = self._search(client_id)
        if client is None:
            raise VendorUnavailable(f"the client {client_id} came and went", code="409")
        if owner_of(client, self._installation) != owner_of(desired, self._installation):
            raise VendorConflict(f"the client {client_id} belongs to someone else", code="409")
        if "secret" in desired:
            with self._calling() as admin:
                admin.update_client(client["id"], {"clientId": client_id, "secret": desired["secret"]})
        return view(client, self._installation)

    def _is_very(self, client_id: str, uuid: str) -> bool:
        client = self._search(client_id)
        return client is not None and client["id"] == uuid

    def _delete(self, client_id: str, owner: str, uuid: str | None) -> bool:
        client = self._search(client_id)
        if client is None or not owner or owner_of(client, self._installation) != owner:
            return False
        if uuid is not None and client["id"] != uuid:
            return False
        # Not found: someone else deleted it between the two calls, or the answer to our first try was lost.
        with suppress(VendorNotFound), self._calling() as admin:
            admin.delete_client(client["id"])
        return True

    def _secret_of(self, client_id: str) -> str:
        client = self._search(client_id)
        if client is None:
            raise VendorNotFound(f"there is no client {client_id}", code="404")
        with self._calling() as admin:
            return str(admin.get_client_secrets(client["id"])["value"])

    def _search(self, client_id: str) -> Mapping[str, Any] | None:
        return next((client for client in self._page(clientId=client_id) if client.get("clientId") == client_id), None)

    def _page(self, **query: Any) -> list[Mapping[str, Any]]:
        # python-keycloak's own list call cannot page, and a realm may hold thousands of clients.
        from keycloak.exceptions import KeycloakGetError, raise_error_from_response

        with self._calling() as admin:
            answer = admin.connection.raw_get(f"admin/realms/{self._realm}/clients", **query)
            clients = raise_error_from_response(answer, KeycloakGetError)
        if not isinstance(clients, list):
            raise VendorUnavailable("Keycloak's answer is not a list of clients")
        return clients

    def _service_credentials(self) -> tuple[str, str]:
        configured = self._credentials()
        if "service_client_id" in configured:
            return configured["service_client_id"], configured["service_client_secret"]
        client = self._search(SERVICE_CLIENT)
        if client is None:
            secret = random_secrets.token_urlsafe(24)
            desired = confidential(SERVICE_CLIENT, secret, {SERVICE: "true"}, [])
            try:
                with self._calling() as admin:
                    admin.create_client(desired)
            except VendorConflict:
                raise VendorUnavailable("the service client was made meanwhile", code="409") from None
            return SERVICE_CLIENT, secret
        if attributes(client).get(SERVICE) != "true":
            raise VendorRefused(
                f"the client {SERVICE_CLIENT} is not ours",
                hint="name service_client_id and service_client_secret in the identity admin secret",
            )
        return SERVICE_CLIENT, self._secret_of(SERVICE_CLIENT)

    # --- sessions, retries, errors -----------------------------------------------------------------------------------

    def _retried(self, work: Callable[[], T]) -> T:
        """The one layer that retries Keycloak: three tries on what may pass."""
        import stamina  # kept out of cold starts

        for attempt in stamina.retry_context(on=_TRANSIENT, attempts=_ATTEMPTS, wait_initial=0.2, wait_max=2.0):
            with attempt:
                return work()
        raise AssertionError("unreachable")  # pragma: no cover

    @contextmanager
    def _calling(self) -> Iterator[Any]:
        """The admin API with a valid token; errors inside come out as ours."""
        fresh = self._session is None or self._clock() >= self._session.ends_at
        session = self._login() if fresh or self._session is None else self._session
        with _translated():
            try:
                yield session.admin
            except Exception as error:
                if getattr(error, "response_code", None) == 401:
                    self._session = None
                    if not fresh:
                        # The realm's keys or our session changed meanwhile: a new token may do.
                        raise VendorUnavailable("Keycloak no longer takes the token", code="401") from error
                raise

    def _login(self) -> _Session:
        from keycloak import KeycloakAdmin  # kept out of cold starts

        credentials = self._credentials()
        token = self._token(credentials["client_id"], credentials["client_secret"])
        admin = KeycloakAdmin(
            server_url=f"{self._base}/", realm_name=self._realm, token=token, timeout=_SECONDS, max_retries=0
        )
        self._session = _Session(admin, self._clock() + min(float(token["expires_in"]) * 0.8, 240.0))
        return self._session

    def _token(self, client_id: str, secret: str) -> dict[str, Any]:
        from keycloak import KeycloakOpenID  # kept out of cold starts

        with _translated():
            door = KeycloakOpenID(
                server_url=f"{self._base}/",
                realm_name=self._realm,
                client_id=client_id,
                client_secret_key=secret,
                timeout=_SECONDS,
                max_retries=0,
            )
            return dict(door.token(grant_type="client_credentials"))

    def _credentials(self) -> dict[str, str]:
        hint = 'put {"client_id": ..., "client_secret": ...} into the identity admin secret'
        try:
            credentials = json.loads(self._read_secret(self._admin_secret))
        except ValueError:
            # `from None`: the decoder's error would carry the secret's text.
            raise VendorRefused("the identity admin secret is not JSON", hint=hint) from None
        needed = ("client_id", "client_secret")
        if not isinstance(credentials, dict) or not all(credentials.get(name) for name in needed):
            raise VendorRefused("the identity admin secret lacks the client's id or secret", hint=hint)
        return {str(key): str(value) for key, value in credentials.items()}


@contextmanager
def _translated() -> Iterator[None]:
    """Keycloak's errors as ours. Answers are not quoted: a body may echo what was sent."""
    from keycloak.exceptions import KeycloakConnectionError, KeycloakError
    from requests import exceptions as http

    try:
        yield
    except (KeycloakConnectionError, http.RequestException) as error:
        cause = error.__cause__ or error.__context__
        if isinstance(error, http.Timeout) or isinstance(cause, http.ReadTimeout):
            raise VendorTimeout("Keycloak did not answer in time") from None
        raise VendorUnavailable("Keycloak cannot be reached") from None
    except KeycloakError as error:
        raise _by_status(error.response_code or 0) from None


def _by_status(status: int) -> VendorError:
    code = str(status)
    if status in {401, 403}:
        return PermissionDenied(
            f"Keycloak answered {status}",
            code=code,
            hint="check the identity admin secret and that its client has the role manage-clients",
        )
    if status == 404:
        return VendorNotFound("Keycloak does not know it", code=code)
    if status == 409:
        return VendorConflict("Keycloak has one already", code=code)
    if status == 429:
        return VendorThrottled("Keycloak asks to slow down", code=code)
    if status >= 500 or status == 0:
        return VendorUnavailable(f"Keycloak answered {status}", code=code)
    return VendorRefused(f"Keycloak answered {status}", code=code)
