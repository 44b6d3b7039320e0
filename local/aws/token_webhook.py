"""Checks of EKS on a bearer token: the checks of aws-iam-authenticator's server, and the cluster's access entries.

It takes and gives the body of a Kubernetes ``TokenReview``, as an API server sends it to a webhook.
"""

from __future__ import annotations

import base64
import binascii
import http.client
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlsplit

from local.kubernetes.people import WebhookFailed

PREFIX, CLUSTER_HEADER = "k8s-aws-v1.", "x-k8s-aws-id"
_LONGEST = 4096
_LIFE = timedelta(minutes=15)
_PARAMETERS = frozenset(
    {"action", "version"}
    | {
        "x-amz-" + word
        for word in ("algorithm", "credential", "date", "expires", "security-token", "signature", "signedheaders")
    }
)
_HOST = re.compile(r"sts(\.[a-z]{2}(-[a-z]+)+-\d)?\.amazonaws\.com", re.ASCII)
"""The local cloud is in the partition ``aws``."""
_ARN = re.compile(r"arn:(?P<partition>[a-z-]+):(?P<service>sts|iam)::(?P<account>\d{12}):(?P<resource>.+)")
_BASE64 = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)

Ask = Callable[[SplitResult, Mapping[str, str]], tuple[int, str]]
"""Sends a GET for this URL with these headers to STS: the status and the text of the answer."""


class Rejected(Exception):
    """The token is not one of this cluster. The text says why, for logs of the local cloud."""


class Unanswered(WebhookFailed):
    """STS itself failed, so nothing is known of the token."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Signer of a token. ``canonical_arn`` of a session is that of its role."""

    arn: str
    canonical_arn: str
    account: str
    user_id: str
    session: str


@dataclass(frozen=True, slots=True)
class AccessEntry:
    """An access entry of a cluster. ``policies`` are the names of the access policies of cluster scope, without which
    and without groups who comes in may do nothing. Without ``username`` it is the usual one of its kind."""

    principal_arn: str
    username: str = ""
    groups: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    principal_id: str | None = None
    """The id of the role that it was made for, whose name a later one may have; None: of whoever has the name."""

    @classmethod
    def described(
        cls, entry: Mapping[str, Any], policies: Iterable[Mapping[str, Any]] = (), principal_id: str | None = None
    ) -> AccessEntry:
        """An entry as EKS describes it, with its associated policies; those of single namespaces are left out."""
        names = [policy["policyArn"] for policy in policies if policy["accessScope"]["type"] == "cluster"]
        groups = tuple(entry.get("kubernetesGroups") or ())
        return cls(entry["principalArn"], entry.get("username") or "", groups, tuple(names), principal_id)

    def is_of(self, identity: Identity) -> bool:
        """Whether who has signed comes in by it."""
        return self.principal_arn == identity.canonical_arn and self.principal_id in (None, identity.user_id)


@dataclass(frozen=True)
class TokenWebhook:
    """Judges the tokens of one cluster. ``entries`` gives its access entries as they are now."""

    cluster: str
    entries: Callable[[], Iterable[AccessEntry]]
    ask: Ask
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def review(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a ``TokenReview``. Raises ``Unanswered`` when STS fails: the API server asks again."""
        try:
            identity = self.identity(str((body.get("spec") or {}).get("token") or ""))
            entry = next((entry for entry in self.entries() if entry.is_of(identity)), None)
            if entry is None:
                raise Rejected(f"no access entry for {identity.canonical_arn}")
            status = {"authenticated": True, "user": _user(identity, entry)}
        except Rejected as error:
            status = {"authenticated": False, "error": str(error)}
        version = body.get("apiVersion") or "authentication.k8s.io/v1"
        return {"apiVersion": version, "kind": "TokenReview", "status": status}

    def identity(self, token: str) -> Identity:
        """Identity of the token's signer. Raises ``Rejected`` unless it is for this cluster, and of now."""
        url = _url(token)
        _require(url.scheme == "https", "its scheme is not https")
        _require(_HOST.fullmatch(url.netloc) is not None, "its host is not that of STS")
        _require(url.path == "/" and not url.fragment, "its path is not /")
        query = _parameters(url.query)
        _require(query.get("action") == "GetCallerIdentity", "its action is another")
        signed = query.get("x-amz-signedheaders", "").lower().split(";")
        _require(CLUSTER_HEADER in signed, f"{CLUSTER_HEADER} is not signed")
        expires = query.get("x-amz-expires", "")
        _require(expires.isascii() and expires.isdigit() and int(expires) <= 900, "X-Amz-Expires is not 0 to 900")
        self._check_date(query.get("x-amz-date", ""))
        # The cluster's own name is sent, so that STS refuses the signature of any other.
        headers = {CLUSTER_HEADER: self.cluster, "accept": "application/json", "host": url.netloc}
        status, answer = self.ask(url, headers)
        if status >= 500 or status == 429 or "Throttling" in answer:
            raise Unanswered(f"STS answered {status}")
        _require(status == 200, f"STS answered {status}")
        return _identity(answer)

    def _check_date(self, stamp: str) -> None:
        try:
            signed_at = datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        except ValueError:
            raise Rejected("it has no X-Amz-Date") from None
        _require(self.now() <= signed_at + _LIFE, "it has expired")


def asked_at(endpoint: str) -> Ask:
    """Asks the local cloud's STS at ``endpoint`` instead of the host that the request was signed for."""
    parts = urlsplit(endpoint)

    def ask(url: SplitResult, headers: Mapping[str, str]) -> tuple[int, str]:
        connection = http.client.HTTPConnection(parts.netloc, timeout=10)
        try:
            connection.request("GET", f"/?{url.query}", headers=dict(headers))
            answer = connection.getresponse()
            return answer.status, answer.read(64 * 1024).decode("utf-8", "replace")
        except (OSError, http.client.HTTPException) as error:
            raise Unanswered("STS cannot be reached") from error
        finally:
            connection.close()

    return ask


def canonical(arn: str) -> str:
    """The ARN by which access entries name who has this one: a session's is that of its role. Raises ``Rejected``."""
    parts = _ARN.fullmatch(arn)
    if parts is None:
        raise Rejected(f"{arn} is no identity")
    kind, _, name = parts["resource"].partition("/")
    if (parts["service"], kind) == ("sts", "assumed-role") and "/" in name:
        return f"arn:{parts['partition']}:iam::{parts['account']}:role/{name.rpartition('/')[0]}"
    if (parts["service"], kind) in {("sts", "federated-user"), ("iam", "user"), ("iam", "role"), ("iam", "root")}:
        return arn
    raise Rejected(f"{arn} is no identity")


def _require(holds: bool, reason: str) -> None:
    if not holds:
        raise Rejected(reason)


def _url(token: str) -> SplitResult:
    _require(len(token) <= _LONGEST, "it is too long")
    _require(token.startswith(PREFIX), f"it does not begin with {PREFIX}")
    encoded = token.removeprefix(PREFIX)
    _require(_BASE64.fullmatch(encoded) is not None, "it is not base64 without padding")
    try:
        text = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode("ascii")
        _require(text.isprintable() and " " not in text, "it is no URL in base64")
        return urlsplit(text)
    except (binascii.Error, ValueError):
        raise Rejected("it is no URL in base64") from None


def _parameters(text: str) -> dict[str, str]:
    """The query by lower-case names, each of which is allowed and there once."""
    try:
        pairs = [(name.lower(), value) for name, value in parse_qsl(text, keep_blank_values=True, strict_parsing=True)]
    except ValueError:
        raise Rejected("its query cannot be read") from None
    by_name = dict(pairs)
    _require(len(by_name) == len(pairs), "a parameter comes twice")
    _require(by_name.keys() <= _PARAMETERS, "it has a parameter that is not allowed")
    return by_name


def _identity(answer: str) -> Identity:
    """The identity out of STS's answer, which is XML here and JSON at AWS."""
    fields = {}
    for name in ("Arn", "Account", "UserId"):
        match = re.search(rf'<{name}>([^<]+)</{name}>|"{name}": ?"([^"]+)"', answer)
        if match is None:
            raise Unanswered("STS did not say who has signed")
        fields[name] = match[1] or match[2]
    arn = fields["Arn"]
    session = arn.rpartition("/")[2] if ":assumed-role/" in arn else ""
    user_id = fields["UserId"].partition(":")[0] if session else fields["UserId"]
    return Identity(arn, canonical(arn), fields["Account"], user_id, session)


def _user(identity: Identity, entry: AccessEntry) -> dict[str, Any]:
    """User name and groups; an access policy is a group here, which ``policy_bindings`` gives its rights."""
    account, role = identity.account, identity.canonical_arn.rpartition("/")[2]
    usual = f"arn:aws:sts::{account}:assumed-role/{role}/{{{{SessionName}}}}" if identity.session else identity.arn
    name = entry.username or usual
    for word, value in (
        ("AccountID", account),
        ("SessionName", identity.session.replace("@", "-")),
        ("SessionNameRaw", identity.session),
    ):
        name = name.replace(f"{{{{{word}}}}}", value)
    return {
        "username": name,
        "uid": f"aws-iam-authenticator:{account}:{identity.user_id}",
        "groups": [*entry.groups, *map(policy_group, entry.policies)],
        "extra": {"arn": [identity.arn], "canonicalArn": [identity.canonical_arn], "sessionName": [identity.session]},
    }


_ROLES = {"AmazonEKSViewPolicy": "view", "AmazonEKSEditPolicy": "edit", "AmazonEKSClusterAdminPolicy": "cluster-admin"}
"""Access policies, and the roles that Kubernetes has from the start with about the same rights."""


def policy_group(policy: str) -> str:
    """The group that stands for an access policy, by its name or its ARN."""
    return f"eks-access-policy:{policy.rpartition('/')[2]}"


def policy_bindings() -> list[dict[str, Any]]:
    """Cluster roles and bindings that give the groups of access policies their rights: EKS has an authorizer of its own
    for this."""
    group = "rbac.authorization.k8s.io"
    return [
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": policy_group(policy)},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": group, "kind": "Group", "name": policy_group(policy)}],
        }
        for policy, role in _ROLES.items()
    ]
