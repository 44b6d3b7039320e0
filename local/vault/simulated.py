"""A Vault that only plays: one AppRole login, wrapped secret ids, and one key-value store of version 2.

Statuses and bodies are those of a real Vault 1.14; ``tests/contracts/test_vault.py`` runs on both.
"""

from __future__ import annotations

import json
import re
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx

POLICY_NAME = ROLE_NAME = "stockyard"
"""The policy, and the only role whose secret ids it lets one make."""
_NAME = r"([\w.-]+)"
_DENIED = "permission denied"


class Refused(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, *errors: str) -> None:
        super().__init__(status)
        self.status, self.body = status, {"errors": list(errors)}


@dataclass
class _Role:
    role_id: str = field(default_factory=lambda: secrets.token_hex(16))
    policies: str = ""
    secret_id_ttl: int = 0
    secret_id_num_uses: int = 0


@dataclass
class _SecretId:
    role: str
    metadata: Mapping[str, str]
    uses: int
    ends_at: float | None


@dataclass
class _Versions:
    """Versions of one key: the data of each version, None for a deleted one."""

    data: list[Mapping[str, Any] | None] = field(default_factory=list)


class SimulatedVault:
    """The state behind the port. ``root`` is the token that may do everything. ``now``: seconds of any clock."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.root = _token()
        self.secret_ids: dict[str, _SecretId] = {}
        self.requests: list[tuple[str, str]] = []
        """Method and path of each request, in order."""
        self.failing: list[int] = []
        """Statuses of the answers to the next requests."""
        self._now, self._lock = now, threading.Lock()
        self._roles: dict[str, _Role] = {}
        self._tokens: dict[str, str] = {}
        self._wrapped: dict[str, tuple[Mapping[str, Any], float]] = {}
        self._keys: dict[str, _Versions] = {}

    def answer(self, method: str, path: str, headers: Mapping[str, str], content: bytes) -> tuple[int, Any]:
        """Status and document of the answer to a request; None for an empty one. Names of fields in lower case."""
        with self._lock:
            self.requests.append((method, path))
            if self.failing:
                return self.failing.pop(0), {"errors": ["Vault is sealed"]}
            try:
                return self._answer(method, path.removeprefix("/v1/"), headers, content)
            except Refused as refused:
                return refused.status, refused.body

    def names(self) -> set[str]:
        """The names of the keys that were written and not forgotten."""
        with self._lock:
            return set(self._keys)

    def transport(self) -> httpx.MockTransport:
        """Puts it in the network's place, within this process."""
        import httpx

        def handle(request: httpx.Request) -> httpx.Response:
            headers = {name.lower(): value for name, value in request.headers.items()}
            status, document = self.answer(request.method, request.url.path, headers, request.content)
            return httpx.Response(status) if document is None else httpx.Response(status, json=document)

        return httpx.MockTransport(handle)

    def _answer(self, method: str, path: str, headers: Mapping[str, str], content: bytes) -> tuple[int, Any]:
        token, body = headers.get("x-vault-token", ""), _body(content)
        for pattern, routes in _ROUTES.items():
            match = re.fullmatch(pattern, path)
            if match and method in routes:
                answer = routes[method](self, token, body, *match.groups())
                if answer is None:
                    return 204, None
                seconds = headers.get("x-vault-wrap-ttl")
                return 200, self._wrap(answer, int(seconds)) if seconds else {"data": None, "auth": None, **answer}
        if not token:
            raise Refused(403, _DENIED)
        raise Refused(404, f'no handler for route "{path}". route entry not found.')

    # --- who may do what --------------------------------------------------------------------------------------------

    def _check(self, token: str, *, role: str = ROLE_NAME) -> None:
        """Whether the token is the root's, or of a role with the policy, which holds for secret ids of one ``role``."""
        name = self._tokens.get(token)
        allowed = name is not None and self._roles[name].policies == POLICY_NAME and role == ROLE_NAME
        if token != self.root and not allowed:
            raise Refused(403, _DENIED)

    def _check_root(self, token: str) -> None:
        if token != self.root:
            raise Refused(403, _DENIED)

    # --- AppRole ----------------------------------------------------------------------------------------------------

    def put_role(self, token: str, body: Mapping[str, Any], name: str) -> None:
        """Make or change a role."""
        self._check_root(token)
        role = self._roles.setdefault(name, _Role())
        role.policies = str(body.get("token_policies", role.policies))
        role.secret_id_ttl = int(body.get("secret_id_ttl", role.secret_id_ttl))
        role.secret_id_num_uses = int(body.get("secret_id_num_uses", role.secret_id_num_uses))

    def role_id(self, token: str, body: Mapping[str, Any], name: str) -> dict[str, Any]:  # noqa: ARG002
        """The id of a role."""
        self._check_root(token)
        return {"data": {"role_id": self._roles[name].role_id}}

    def make_secret_id(self, token: str, body: Mapping[str, Any], name: str) -> dict[str, Any]:
        """A new secret id; what a request does not say of its limits says the role."""
        self._check(token, role=name)
        if name not in self._roles:
            raise Refused(404, f'role "{name}" does not exist')
        role = self._roles[name]
        uses, ttl = int(body.get("num_uses", role.secret_id_num_uses)), int(body.get("ttl", role.secret_id_ttl))
        if role.secret_id_num_uses and not 0 < uses <= role.secret_id_num_uses:
            raise Refused(400, "num_uses cannot be higher than the role's secret_id_num_uses")
        if role.secret_id_ttl and not 0 < ttl <= role.secret_id_ttl:
            raise Refused(400, "ttl cannot be longer than the role's secret_id_ttl")
        secret_id = secrets.token_hex(16)
        metadata = json.loads(body.get("metadata") or "{}")
        self.secret_ids[secret_id] = _SecretId(name, metadata, uses, self._now() + ttl if ttl else None)
        return {"data": {"secret_id": secret_id, "secret_id_num_uses": uses, "secret_id_ttl": ttl}}

    def destroy_secret_id(self, token: str, body: Mapping[str, Any], name: str) -> None:
        """Take a secret id away."""
        self._check_root(token)
        entry = self.secret_ids.get(str(body.get("secret_id")))
        if entry is not None and entry.role == name:
            del self.secret_ids[str(body["secret_id"])]

    def login(self, token: str, body: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        """A token for who knows role id and secret id."""
        names = [name for name, role in self._roles.items() if role.role_id == body.get("role_id")]
        if not names:
            raise Refused(400, "invalid role ID")
        secret_id = str(body.get("secret_id"))
        entry = self.secret_ids.get(secret_id)
        if entry is None or entry.role != names[0] or (entry.ends_at is not None and entry.ends_at <= self._now()):
            raise Refused(400, "invalid secret id")
        if entry.uses == 1:
            del self.secret_ids[secret_id]
        entry.uses = max(0, entry.uses - 1)
        new_token = _token()
        self._tokens[new_token] = names[0]
        return {"auth": {"client_token": new_token, "metadata": {"role_name": names[0]}, "lease_duration": 3600}}

    # --- wrapping ---------------------------------------------------------------------------------------------------

    def _wrap(self, answer: Mapping[str, Any], seconds: int) -> dict[str, Any]:
        token = _token()
        self._wrapped[token] = (answer, self._now() + seconds)
        return {"data": None, "auth": None, "wrap_info": {"token": token, "ttl": seconds}}

    def unwrap(self, token: str, body: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        """Unwrap an answer, once."""
        answer, ends_at = self._wrapped.pop(token, ({}, 0.0))
        if not answer or ends_at <= self._now():
            raise Refused(400, "wrapping token is not valid or does not exist")
        return dict(answer)

    # --- keys and values --------------------------------------------------------------------------------------------

    def read(self, token: str, body: Mapping[str, Any], name: str) -> dict[str, Any]:  # noqa: ARG002
        """The newest version."""
        self._check(token)
        versions = self._keys.get(name, _Versions()).data
        if not versions:
            raise Refused(404)
        if versions[-1] is None:
            raise Refused(404)
        return {"data": {"data": versions[-1], "metadata": {"version": len(versions)}}}

    def write(self, token: str, body: Mapping[str, Any], name: str) -> dict[str, Any]:
        """A further version; with ``cas`` only after that one."""
        self._check(token)
        if "data" not in body:
            raise Refused(400, "no data provided")
        versions = self._keys.get(name, _Versions())
        cas = (body.get("options") or {}).get("cas")
        if cas is not None and cas != len(versions.data):
            raise Refused(400, "check-and-set parameter did not match the current version")
        self._keys[name] = versions
        versions.data.append(body["data"])
        return {"data": {"version": len(versions.data)}}

    def delete(self, token: str, body: Mapping[str, Any], name: str) -> None:  # noqa: ARG002
        """Delete the newest version; that it was there stays."""
        self._check(token)
        if name in self._keys:
            self._keys[name].data[-1] = None

    def forget(self, token: str, body: Mapping[str, Any], name: str) -> None:  # noqa: ARG002
        """Delete all versions, and that they were there."""
        self._check(token)
        self._keys.pop(name, None)


_Route = Callable[..., dict[str, Any] | None]
_ROUTES: Mapping[str, Mapping[str, _Route]] = {
    "auth/approle/login": {"POST": SimulatedVault.login},
    f"auth/approle/role/{_NAME}": {"POST": SimulatedVault.put_role},
    f"auth/approle/role/{_NAME}/role-id": {"GET": SimulatedVault.role_id},
    f"auth/approle/role/{_NAME}/secret-id": {"POST": SimulatedVault.make_secret_id},
    f"auth/approle/role/{_NAME}/secret-id/destroy": {"POST": SimulatedVault.destroy_secret_id},
    "sys/wrapping/unwrap": {"POST": SimulatedVault.unwrap},
    f"secret/data/stockyard/{_NAME}": {
        "GET": SimulatedVault.read,
        "POST": SimulatedVault.write,
        "DELETE": SimulatedVault.delete,
    },
    f"secret/metadata/stockyard/{_NAME}": {"DELETE": SimulatedVault.forget},
}


def _token() -> str:
    return f"hvs.{secrets.token_urlsafe(24)}"


def _body(content: bytes) -> Mapping[str, Any]:
    try:
        document = json.loads(content) if content else {}
    except ValueError:
        raise Refused(400, "failed to parse JSON input") from None
    return document if isinstance(document, dict) else {}
