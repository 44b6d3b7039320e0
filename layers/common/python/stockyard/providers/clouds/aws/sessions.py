"""Sessions in a tenant's account: the role is assumed with the external id that we generated."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import boto3
from botocore.config import Config
from botocore.session import Session

from stockyard.domain.records import CloudAccount
from stockyard.errors import CredentialsRevoked, PermissionDenied, VendorNotFound
from stockyard.providers.clouds.aws import DEFAULT_REGION, regions
from stockyard.providers.clouds.aws.errors import translated

DURATION = 3600
"""Seconds a session lives; it is not used in its last ``_MARGIN`` seconds."""
_MARGIN = 600
_SESSIONS = 32
"""Sessions kept in one process."""


SessionFactory = Callable[[], boto3.Session]


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

    def get(self, service: str, region: str, config: Config = RETRYING) -> Any:
        """A client that repeats calls and waits for answers as ``config`` says."""
        key = (service, region, id(config))
        if key not in self._clients:
            make: Callable[..., Any] = self.session.create_client
            self._clients[key] = make(service, region_name=region, config=config)
        return self._clients[key]


class Sessions:
    """Assumes roles and keeps the sessions until shortly before they end."""

    def __init__(self, factory: SessionFactory, clock: Callable[[], float] = time.time) -> None:
        self._factory = factory
        self._clock = clock
        self._kept: OrderedDict[tuple[str, str, str], Clients] = OrderedDict()

    def of(self, account: CloudAccount, name: str) -> Clients:
        """Clients in the account, by a session called ``name``.

        The external id is part of the cache's key, so that a tenant who names another's role gains nothing.
        Raises ``CredentialsRevoked`` when the role cannot be assumed.
        """
        arn = role_arn(account)
        key = (arn, account.external_id, name)
        clients = self._kept.get(key)
        if clients is None or clients.expires <= self._clock():
            clients = self._assumed(arn, account.external_id, name)
            self._kept[key] = clients
            while len(self._kept) > _SESSIONS:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return clients

    def assume(self, arn: str, name: str, external_id: str | None) -> dict[str, str]:
        """Temporary keys of the role. ``PermissionDenied`` when its trust policy does not allow it."""
        # RoleSessionName takes 2 to 64 characters of this alphabet.
        safe = "".join(c if c.isalnum() or c in "+=,.@-_" else "-" for c in name)[:64].ljust(2, "-")
        extra = {} if external_id is None else {"ExternalId": external_id}
        with translated("sts AssumeRole"):
            answer = self._own.assume_role(RoleArn=arn, RoleSessionName=safe, DurationSeconds=DURATION, **extra)
        keys: dict[str, str] = answer["Credentials"]
        return keys

    @cached_property
    def _own(self) -> Any:
        """Our own client, made once: making one costs more than its calls."""
        session = self._factory()
        make: Callable[..., Any] = session.client
        return make("sts", region_name=session.region_name or DEFAULT_REGION, config=RETRYING)

    def _assumed(self, arn: str, external_id: str, name: str) -> Clients:
        started = self._clock()
        try:
            keys = self.assume(arn, name, external_id)
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


def account_number(account: CloudAccount) -> str:
    """The 12 digits of the AWS account that the role belongs to."""
    parts = role_arn(account).split(":")
    return parts[4] if len(parts) > 4 else ""


def partition(account: CloudAccount) -> str:
    """``aws``, ``aws-cn`` or ``aws-us-gov``."""
    return role_arn(account).split(":")[1]
