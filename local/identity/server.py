"""A stand-in for Keycloak 26: the endpoints that Stockyard, its command line and its clusters use.

Status codes and bodies are those of a real Keycloak 26; ``tests/contracts/test_identity.py`` runs on both.
"""

from __future__ import annotations

import json
import re
import socket
import threading
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import Any, ClassVar
from urllib.parse import parse_qsl, unquote, urlsplit

from local.authority import Authority
from local.identity.codes import SentBack, allowed, origins
from local.identity.page import login_page, refusal_page
from local.identity.people import Person
from local.identity.realm import ADMIN_CLIENT, CLI_CLIENT, DEVICE_GRANT, REALM, Realm, service_user
from local.identity.refusals import Refused
from local.loopback import LoopbackServer

_OIDC = f"/realms/{REALM}/protocol/openid-connect"
_CLIENTS = f"/admin/realms/{REALM}/clients"
_SESSION = "KEYCLOAK_IDENTITY"


class IdentityServer:
    """The stand-in on a loopback port. ``realm`` holds its state.

    With ``auto_approve`` (the default) a device code is approved at once; without, by opening the
    ``verification_uri_complete`` of its answer.
    """

    def __init__(self, *, audience: str = "stockyard", auto_approve: bool = True) -> None:
        self.realm = Realm(audience=audience, auto_approve=auto_approve)
        self._server: LoopbackServer | None = None
        self._thread: threading.Thread | None = None

    admin_client_id = ADMIN_CLIENT
    cli_client_id = CLI_CLIENT

    @property
    def admin_client_secret(self) -> str:
        """The generated secret of the admin client."""
        return self.realm.admin_secret

    @property
    def issuer(self) -> str:
        """The issuer of the realm's tokens; empty before :meth:`start`."""
        return self.realm.issuer

    def start(self, port: int = 0, authority: Authority | None = None) -> str:
        """Listen on 127.0.0.1 (a free port for 0) and return the base URL; with an ``authority`` by TLS."""
        handler = type("BoundHandler", (_Handler,), {"realm": self.realm})
        self._server = _Server(("127.0.0.1", port), handler)
        if authority is not None:
            # The handshake belongs to each connection's own thread: nobody else is to wait for it.
            context = authority.serving("identity")
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        base = f"http{'s' if authority else ''}://127.0.0.1:{self._server.server_address[1]}"
        self.realm.issuer = f"{base}/realms/{REALM}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True, name="identity")
        self._thread.start()
        return base

    def stop(self) -> None:
        """Stop listening; a second call does nothing."""
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join(5)
        self._server = self._thread = None

    def console_at(self, url: str) -> None:
        """Make the public client of the console that is served below ``url``."""
        self.realm.console_at(url)

    def token(
        self,
        tenant: str,
        roles: Sequence[str] = (),
        client_id: str = CLI_CLIENT,
        subject: str = "local-user",
        ttl: int = 86_400,
    ) -> str:
        """An access token of a person of ``tenant``, valid ``ttl`` seconds."""
        return self.realm.token(tenant, roles, client_id, subject, ttl)

    def sign_in(self, tenant: str, roles: Sequence[str] = (), *, subject: str = "local-user") -> dict[str, Any]:
        """All tokens that the command line gets of a person, valid a day; the refresh token cannot be used."""
        return self.realm.sign_in(Person(tenant, roles, subject), 86_400)


class _Server(LoopbackServer):
    """Closes its open connections too when it is closed: a kept-alive one would go on being answered."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._open: set[socket.socket] = set()
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, *_: Any) -> None:
        """A caller that went away, or does not trust our authority, is no news."""

    def server_close(self) -> None:
        super().server_close()
        for connection in tuple(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    realm: ClassVar[Realm]
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    timeout = 60

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_PUT(self) -> None:
        self._serve()

    def do_DELETE(self) -> None:
        self._serve()

    def log_message(self, *_: Any) -> None:
        """Logs nothing, because request lines may contain user codes."""

    def _serve(self) -> None:
        self._raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        self.query = dict(parse_qsl(url.query))
        try:
            for method, pattern, action in _ROUTES:
                match = re.fullmatch(pattern, url.path)
                if match and method == self.command:
                    return action(self, *map(unquote, match.groups()))
            if url.path.startswith("/realms/") and not url.path.startswith(f"/realms/{REALM}"):
                raise Refused(404, {"error": "Realm does not exist"})
            raise Refused(404, {"error": "Unable to find matching target resource method"})
        except Refused as refusal:
            self._answer(refusal.status, refusal.body, self._readable())

    def _answer(self, status: int, body: Any = None, headers: Mapping[str, str] | None = None) -> None:
        raw = b"" if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if body is not None:
            kind = "text/html; charset=utf-8" if isinstance(body, str) else "application/json"
            self.send_header("Content-Type", kind)
        if status != 204:
            self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)
        self.wfile.flush()

    def _form(self) -> dict[str, str]:
        form = dict(parse_qsl(self._raw.decode(), keep_blank_values=True))
        scheme, _, credentials = self.headers.get("Authorization", "").partition(" ")
        if scheme.lower() == "basic":
            name, _, secret = b64decode(credentials).decode().partition(":")
            form |= {"client_id": unquote(name), "client_secret": unquote(secret)}
        return form

    def _json(self) -> dict[str, Any]:
        try:
            document = json.loads(self._raw)
        except ValueError:
            raise Refused(400, {"error": "invalid_request", "error_description": "Cannot parse the JSON"}) from None
        return document if isinstance(document, dict) else {}

    def _as_admin(self) -> None:
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        if scheme != "Bearer":
            raise Refused(401, {"error": "HTTP 401 Unauthorized"})
        if not self.realm.is_admin(token):
            raise Refused(403, {"error": "HTTP 403 Forbidden"})

    # --- OpenID Connect ----------------------------------------------------------------------------------------------

    def discovery(self) -> None:
        issuer = self.realm.issuer
        oidc = f"{issuer}/protocol/openid-connect"
        document = {
            "issuer": issuer,
            "authorization_endpoint": f"{oidc}/auth",
            "token_endpoint": f"{oidc}/token",
            "jwks_uri": f"{oidc}/certs",
            "device_authorization_endpoint": f"{oidc}/auth/device",
            "end_session_endpoint": f"{oidc}/logout",
            "grant_types_supported": ["authorization_code", "client_credentials", "refresh_token", DEVICE_GRANT],
            "code_challenge_methods_supported": ["S256"],
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
        }
        self._answer(200, document, {"Access-Control-Allow-Origin": "*"})

    def certificates(self) -> None:
        self._answer(200, self.realm.certificates())

    def token(self) -> None:
        self._answer(200, self.realm.grant(self._form()), self._readable())

    def _readable(self) -> dict[str, str]:
        """Headers that let a page of one of the realm's clients read the answer."""
        origin = self.headers.get("Origin")
        clients = self.realm.listed({})
        if origin is None or not any(origin in origins(client) for client in clients):
            return {}
        return {"Access-Control-Allow-Origin": origin, "Access-Control-Allow-Credentials": "true"}

    def authorize(self) -> None:
        """Send a browser with a session back with a code; show the page of logins to others."""
        self._login(None)

    def log_in(self) -> None:
        """The page's form: a session, and back with a code."""
        self._login(self._form().get("username", ""))

    def _login(self, name: str | None) -> None:
        try:
            request = self.realm.authorization(self.query)
        except SentBack as back:
            return self._send(back.address)
        except Refused as refusal:
            return self._answer(refusal.status, refusal_page(refusal.body))
        problem = None
        if name is not None:
            try:
                self.realm.named_person(name)
            except Refused as refusal:
                problem, name = refusal.body["error"], None
        session = self._session()
        if name is not None:
            session = self.realm.codes.begin(name)
        person = self.realm.codes.person(session)
        if person is None and request.silent:
            return self._send(request.answer(error="login_required"))
        if person is None or problem is not None:
            people = [(each.subject, _about(each)) for each in self.realm.people]
            return self._answer(200, login_page(self.path, people, problem), {"Cache-Control": "no-store"})
        cookie = f"{_SESSION}={session}; Path=/realms/{REALM}/; HttpOnly; SameSite=Lax"
        return self._send(self.realm.codes.issue(request, person, session, self.realm.issuer), {"Set-Cookie": cookie})

    def _send(self, address: str, headers: Mapping[str, str] | None = None) -> None:
        self._answer(302, "", {"Location": address, "Cache-Control": "no-store", **(headers or {})})

    def _session(self) -> str:
        parts = (part.strip().partition("=") for part in self.headers.get("Cookie", "").split(";"))
        return next((value for name, _, value in parts if name == _SESSION), "")

    def log_out(self) -> None:
        """End the browser's session, and send it back where the client allows."""
        self.realm.end_session(self._session())
        client = self.realm.named(self.query.get("client_id", ""))
        address = self.query.get("post_logout_redirect_uri", "")
        if client is None or not allowed(client, address):
            return self._answer(200, refusal_page({"": "You are logged out."}))
        return self._send(address, {"Set-Cookie": f"{_SESSION}=; Path=/realms/{REALM}/; Max-Age=0"})

    def start_device(self) -> None:
        self._answer(200, self.realm.start_device(self._form()))

    def approve(self) -> None:
        code = self.query.get("user_code") or self._form().get("user_code", "")
        if not self.realm.approve(code):
            raise Refused(400, {"error": "Invalid code, please try again."})
        self._answer(200, {"message": "Device login successful"})

    # --- clients -----------------------------------------------------------------------------------------------------

    def list_clients(self) -> None:
        self._as_admin()
        self._answer(200, self.realm.listed(self.query))

    def create_client(self) -> None:
        self._as_admin()
        key = self.realm.create(self._json())
        base = self.realm.issuer.removesuffix(f"/realms/{REALM}")
        self._answer(201, headers={"Location": f"{base}{_CLIENTS}/{key}"})

    def get_client(self, key: str) -> None:
        self._as_admin()
        self._answer(200, self.realm.get_client(key))

    def update_client(self, key: str) -> None:
        self._as_admin()
        self.realm.update(key, self._json())
        self._answer(204)

    def delete_client(self, key: str) -> None:
        self._as_admin()
        self.realm.remove(key)
        self._answer(204)

    def get_secret(self, key: str) -> None:
        self._as_admin()
        self._answer(200, {"type": "secret", "value": self.realm.get_client(key).get("secret", "")})

    def renew_secret(self, key: str) -> None:
        self._as_admin()
        self._answer(200, {"type": "secret", "value": self.realm.new_secret(key)})

    def service_account(self, key: str) -> None:
        self._as_admin()
        self._answer(200, service_user(self.realm.get_client(key)))


def _about(person: Person) -> str:
    roles = ", ".join(role.removeprefix("stockyard-") for role in person.roles[-1:])
    return f"{roles} of {person.tenant}"


_CLIENT_PATH = rf"{_CLIENTS}/([^/]+)"
_ROUTES: tuple[tuple[str, str, Callable[..., None]], ...] = (
    ("GET", rf"/realms/{REALM}/\.well-known/openid-configuration", _Handler.discovery),
    ("GET", rf"{_OIDC}/certs", _Handler.certificates),
    ("POST", rf"{_OIDC}/token", _Handler.token),
    ("POST", rf"{_OIDC}/auth/device", _Handler.start_device),
    ("GET", rf"{_OIDC}/auth", _Handler.authorize),
    ("POST", rf"{_OIDC}/auth", _Handler.log_in),
    ("GET", rf"{_OIDC}/logout", _Handler.log_out),
    ("GET", rf"/realms/{REALM}/device", _Handler.approve),
    ("POST", rf"/realms/{REALM}/device", _Handler.approve),
    ("GET", _CLIENTS, _Handler.list_clients),
    ("POST", _CLIENTS, _Handler.create_client),
    ("GET", _CLIENT_PATH, _Handler.get_client),
    ("PUT", _CLIENT_PATH, _Handler.update_client),
    ("DELETE", _CLIENT_PATH, _Handler.delete_client),
    ("GET", rf"{_CLIENT_PATH}/client-secret", _Handler.get_secret),
    ("POST", rf"{_CLIENT_PATH}/client-secret", _Handler.renew_secret),
    ("GET", rf"{_CLIENT_PATH}/service-account-user", _Handler.service_account),
)
