"""Sessions in a tenant's account: the role is assumed with the external id that we generated, or an access key is used
where a stage allows accounts that have one instead."""

from __future__ import annotations

import hashlib
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any

import boto3
from botocore.config import Config
from botocore.session import Session

from stockyard.domain.records import CloudAccount
from stockyard.domain.values import ids
from stockyard.errors import CredentialsRevoked, PermissionDenied, VendorNotFound
from stockyard.ports import Secrets
from stockyard.providers.clouds.aws import regions
from stockyard.providers.clouds.aws.default_region import DEFAULT_REGION
from stockyard.providers.clouds.aws.errors import translated

DURATION = 3600
"""Seconds a session lives; it is not used in its last ``_MARGIN`` seconds."""
_MARGIN = 600
_SESSIONS = 32
"""Sessions kept in one process."""


SessionFactory = Callable[[], boto3.Session]
OpenSecrets = Callable[[], Secrets]
SECRET_ACCESS_KEY = "secret_access_key"  # noqa: S105 - a name
"""The name of an account's secret."""


CONNECT_SECONDS, READ_SECONDS, SLOW_READ_SECONDS = 5, 20, 60
"""Time-outs of a call. Slow is what tries many types and zones before it answers. All attempts of a call have to end
within the time-out of a function, or else nobody hears of the last one's answer; a test compares them."""


def config(attempts: int, read_seconds: int = READ_SECONDS) -> Config:
    """botocore is the one layer that retries an AWS call; ``attempts`` 1 is for calls that must not be repeated, and
    for slow ones, which the workflow repeats with the same client token."""
    return Config(
        retries={"mode": "standard", "total_max_attempts": attempts},
        connect_timeout=CONNECT_SECONDS,
        read_timeout=read_seconds,
    )


RETRYING, ONCE, SLOW = config(3), config(1), config(1, SLOW_READ_SECONDS)


@dataclass
class Clients:
    """The AWS clients of one session, made when first used."""

    session: Session
    expires: float
    _clients: dict[tuple[str, str, int], Any] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)
    """Botocore's clients may be used by several threads, but a session must make one at a time."""

    def get(self, service: str, region: str, config: Config = RETRYING) -> Any:
        """A client that repeats calls and waits for answers as ``config`` says."""
        key = (service, region, id(config))
        with self._lock:
            if key not in self._clients:
                make: Callable[..., Any] = self.session.create_client
                self._clients[key] = make(service, region_name=region, config=config)
            return self._clients[key]


class Sessions:
    """Assumes roles and keeps the sessions until shortly before they end. ``secrets`` is asked for access keys; a stage
    that allows none needs none."""

    def __init__(
        self, factory: SessionFactory, clock: Callable[[], float] = time.time, secrets: OpenSecrets | None = None
    ) -> None:
        self._factory = factory
        self._clock = clock
        self._secrets = secrets
        self._kept: OrderedDict[tuple[str, ...], Clients] = OrderedDict()

    def of(self, account: CloudAccount, name: str, tenant: str = "", policy: str = "") -> Clients:
        """Clients in the account, by a session called ``name``. ``tenant`` is whose it is: an access key is opened for
        that tenant alone; a role needs none. ``policy`` is what the session may do at most; empty: what its role may.
        An access key cannot be narrowed.

        The external id is part of the cache's key, so that a tenant who names another's role gains nothing.
        Raises ``CredentialsRevoked`` when the role cannot be assumed, or when an access key is not kept any more.
        """
        if has_access_key(account):
            return self._by_key(account, tenant)
        arn = role_arn(account)
        key: tuple[str, ...] = (arn, account.external_id, name, policy)
        clients = self._kept.get(key)
        if clients is None or clients.expires <= self._clock():
            clients = self._assumed(arn, account.external_id, name, policy)
            self._kept[key] = clients
            while len(self._kept) > _SESSIONS:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return clients

    def assume(self, arn: str, name: str, external_id: str | None, policy: str = "") -> dict[str, str]:
        """Temporary keys of the role. ``PermissionDenied`` when its trust policy does not allow it."""
        # RoleSessionName takes 2 to 64 characters of this alphabet.
        safe = "".join(c if c.isalnum() or c in "+=,.@-_" else "-" for c in name)[:64].ljust(2, "-")
        extra = {} if external_id is None else {"ExternalId": external_id}
        if policy:
            extra["Policy"] = policy
        with translated("sts AssumeRole"):
            answer = self._own.assume_role(RoleArn=arn, RoleSessionName=safe, DurationSeconds=DURATION, **extra)
        keys: dict[str, str] = answer["Credentials"]
        return keys

    def _by_key(self, account: CloudAccount, tenant: str) -> Clients:
        """Clients by the account's access key, as long as the account is as it is: a key that was exchanged, or that
        nothing opens any more, is not used on."""
        secret = None if self._secrets is None else self._secrets().get(secret_name(account, tenant))
        if secret is None:
            raise CredentialsRevoked(
                f"Cloud account {account.id} has no {SECRET_ACCESS_KEY}.",
                hint="Change the account's attributes: give it again.",
            )
        digest = hashlib.sha256(secret.encode()).hexdigest()
        key = (principal_arn(account), str(account.attributes["access_key_id"]), digest)
        clients = self._kept.get(key)
        if clients is None:
            session = regions.session()
            session.set_credentials(key[1], secret)
            clients = self._kept[key] = Clients(session, math.inf)
            while len(self._kept) > _SESSIONS:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return clients

    @cached_property
    def _own(self) -> Any:
        """Our own client, made once: making one costs more than its calls."""
        session = self._factory()
        make: Callable[..., Any] = session.client
        return make("sts", region_name=session.region_name or DEFAULT_REGION, config=RETRYING)

    def _assumed(self, arn: str, external_id: str, name: str, policy: str) -> Clients:
        started = self._clock()
        try:
            keys = self.assume(arn, name, external_id, policy)
        except (PermissionDenied, VendorNotFound) as error:
            raise CredentialsRevoked(
                f"the role {arn} cannot be assumed",
                code=error.code,
                hint="Check that the role exists and trusts Stockyard with the account's external id, then verify it.",
            ) from error
        session = regions.session()
        session.set_credentials(keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"])
        return Clients(session, started + DURATION - _MARGIN)


def role_arn(account: CloudAccount) -> str:
    """The tenant's role. Raises ``CredentialsRevoked`` when the account has none."""
    arn = str(account.attributes.get("role_arn") or "")
    if not arn:
        raise CredentialsRevoked(
            "the cloud account has no role_arn", code="NoRoleArn", hint="Set role_arn on the cloud account."
        )
    return arn


def has_access_key(account: CloudAccount) -> bool:
    """Whether the way into the account is an access key, and no role."""
    return not account.attributes.get("role_arn") and bool(account.attributes.get("access_key_id"))


def secret_name(account: CloudAccount, tenant: str) -> str:
    """Under which name the account's secret access key is sealed."""
    return ids.account_secret(tenant, account.id, SECRET_ACCESS_KEY)


def principal_arn(account: CloudAccount) -> str:
    """Our principal in the account: the role, or the user whose access key we have. Raises ``CredentialsRevoked`` when
    the account has neither."""
    return str(account.attributes["user_arn"]) if has_access_key(account) else role_arn(account)


def principal_id(identity: Mapping[str, Any]) -> str:
    """The unique id of the role or the user, out of an answer of ``GetCallerIdentity``. Another role of the same name
    has another one."""
    return str(identity["UserId"]).partition(":")[0]


def is_root(account: CloudAccount) -> bool:
    """Whether the access key is that of the AWS account's root user."""
    return principal_arn(account).endswith(":root")


def account_number(account: CloudAccount) -> str:
    """The 12 digits of the AWS account that the role or the user belongs to."""
    parts = principal_arn(account).split(":")
    return parts[4] if len(parts) > 4 else ""


def partition(account: CloudAccount) -> str:
    """``aws``, ``aws-cn`` or ``aws-us-gov``."""
    return principal_arn(account).split(":")[1]
