"""Tokens that an EKS cluster takes: a presigned ``sts:GetCallerIdentity`` that names the cluster in a signed header.

The cluster sends the request to STS and so learns who has signed it. To make a token needs no call, only keys of a role
that the cluster gives access to; the token dies with them.
"""

from __future__ import annotations

import base64
from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from botocore.auth import SIGV4_TIMESTAMP, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from stockyard.errors import CredentialsRevoked, PermissionDenied, VendorNotFound
from stockyard.providers.clouds.aws import regions
from stockyard.providers.clouds.aws.calls import Calls

PREFIX = "k8s-aws-v1."
CLUSTER_HEADER = "x-k8s-aws-id"
EXPIRES = 60
"""``X-Amz-Expires``: clusters look whether it is at most 900, and STS ignores it here."""
LIFE = timedelta(minutes=15)
"""From its date on, STS takes such a request for so long."""
MARGIN = timedelta(minutes=1)
"""A token is given out as ended so much earlier: clocks differ, and a request is under way for a while."""
SESSION_SECONDS = 900
"""The shortest session of a role that STS has."""
KEYS_KEPT = timedelta(minutes=5)
"""For how long keys of a session are used again: a token that is made with them lives ten minutes still."""
MOST_KEYS = 200
_QUERY = "Action=GetCallerIdentity&Version=2011-06-15"


class RoleKeys:
    """Keys of roles for a while, in this process's memory: each person's tokens of a role of a cluster are made by one
    session, so that asking again and again costs no call and no line of the tenant's trail."""

    def __init__(self) -> None:
        self._entries: OrderedDict[tuple[str, ...], tuple[datetime, dict[str, Any]]] = OrderedDict()

    def of(self, memo_key: tuple[str, ...], now: datetime, ask: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The keys for what ``memo_key`` names: those of at most ``KEYS_KEPT`` ago, else what ``ask`` answers."""
        entry = self._entries.get(memo_key)
        if entry is None or not timedelta(0) <= now - entry[0] < KEYS_KEPT:
            entry = self._entries[memo_key] = (now, ask())
        self._entries.move_to_end(memo_key)
        while len(self._entries) > MOST_KEYS:
            self._entries.popitem(last=False)
        return entry[1]


class _Signer(SigV4QueryAuth):
    """Signs as of a given moment. botocore's own way takes the clock's, and writes what it signs to its debug log."""

    def sign(self, request: AWSRequest, now: datetime) -> None:
        request.context["timestamp"] = now.astimezone(UTC).strftime(SIGV4_TIMESTAMP)
        steps: Any = self  # the stubs of botocore lack two of them
        steps._modify_request_before_signing(request)
        text = self.string_to_sign(request, self.canonical_request(request))
        steps._inject_signature_to_request(request, self.signature(text, request))


def role_keys(calls: Calls, role_arn: str, session: str) -> dict[str, Any]:
    """Keys of a role for 900 s, as STS answers them, from a session in the tenant's account called ``session``.

    ``CredentialsRevoked`` when the role is gone or does not trust us.
    """
    try:
        answer = calls.call(
            "sts",
            "assume_role",
            RoleArn=role_arn,
            RoleSessionName=_session_name(session),
            DurationSeconds=SESSION_SECONDS,
        )
    except (PermissionDenied, VendorNotFound) as error:
        raise CredentialsRevoked(
            f"the cluster's role {role_arn} cannot be assumed",
            code=error.code,
            hint="Check that the role exists and trusts the role of the cloud account.",
        ) from error
    keys: dict[str, Any] = answer["Credentials"]
    return keys


def presign(keys: Mapping[str, Any], cluster_name: str, region: str, now: datetime) -> str:
    """A token for the cluster of that name in ``region``, made with keys as STS answers them. No call is made."""
    credentials = Credentials(keys["AccessKeyId"], keys["SecretAccessKey"], keys.get("SessionToken"))
    url = f"https://{host(region)}/?{_QUERY}"
    request = AWSRequest(method="GET", url=url, headers={CLUSTER_HEADER: cluster_name})
    _Signer(credentials, "sts", region, expires=EXPIRES).sign(request, now)
    encoded = base64.urlsafe_b64encode(str(request.url).encode()).decode()
    return PREFIX + encoded.rstrip("=")


def expires_at(keys: Mapping[str, Any], now: datetime) -> datetime:
    """Until when a token may be used that is made now with these keys: not later than their session ends."""
    by_date = now + LIFE
    session_ends = keys.get("Expiration")
    return (min(by_date, session_ends) if isinstance(session_ends, datetime) else by_date) - MARGIN


@cache
def host(region: str) -> str:
    """STS of a region. The token names it whatever endpoint our own calls go to: the cluster takes no other."""
    resolver = regions.session().get_component("endpoint_resolver")
    suffix = resolver.get_partition_dns_suffix(resolver.get_partition_for_region(region))
    return f"sts.{region}.{suffix}"


def _session_name(text: str) -> str:
    """2 to 64 characters of the alphabet that session names have."""
    return "".join(c if (c.isascii() and c.isalnum()) or c in "+=,.@-_" else "-" for c in text)[:64].ljust(2, "-")
