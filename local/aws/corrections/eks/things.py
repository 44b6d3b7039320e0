"""Common base of EKS's parts: things with a state that passes, refusals, and who plays the control planes."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Protocol

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from moto.core.base_backend import BaseBackend
from moto.iam.models import iam_backends
from moto.moto_api._internal import mock_random

from local.aws.corrections import pace
from local.aws.corrections.rest_services import ServiceRefusal
from local.aws.corrections.roles import trusts

Document = dict[str, Any]
PAGE = 100


def in_use(message: str, **fields: Any) -> ServiceRefusal:
    """The thing exists, or something goes on with it."""
    return ServiceRefusal("ResourceInUseException", 409, message, **fields)


def missing(message: str, **fields: Any) -> ServiceRefusal:
    """The thing does not exist."""
    return ServiceRefusal("ResourceNotFoundException", 404, message, **fields)


def bad_parameter(message: str, **fields: Any) -> ServiceRefusal:
    """A parameter cannot be so."""
    return ServiceRefusal("InvalidParameterException", 400, message, **fields)


def bad_request(message: str, **fields: Any) -> ServiceRefusal:
    """The state of things does not allow the call."""
    return ServiceRefusal("InvalidRequestException", 400, message, **fields)


@dataclass
class Thing:
    """``document`` is what EKS tells of it. ``change`` is done at ``at``, and says whether the thing is gone then."""

    document: Document
    at: float = 0.0
    change: Callable[[], bool] | None = None

    def begin(self, status: str, kind: str, change: Callable[[], bool]) -> None:
        """From now on it has this status, until the change of that kind is done."""
        self.document["status"] = status
        self.at, self.change = pace.after(kind), change

    def become(self, status: str) -> bool:
        """A change: it has that status and stays."""
        self.document["status"] = status
        return False

    def settle(self) -> bool:
        """Do what has its time behind it; whether it is gone."""
        if self.change is None or pace.now() < self.at:
            return False
        change, self.change = self.change, None
        return change()

    def copy(self) -> Document:
        """The document as of now."""
        return copy.deepcopy(self.document)


@dataclass
class Update(Thing):
    """The record of an update. ``part`` names the node group and the add-on that it changes, if it is of one."""

    part: tuple[str, str] = ("", "")


@dataclass
class Entry(Thing):
    """An access entry. EKS keeps the id of its role or user and tells nobody: one that is made anew under the same name
    is another. None: of nobody that IAM knows."""

    principal_id: str | None = None


@dataclass
class Cluster(Thing):
    """A cluster with all that belongs to it."""

    entries: dict[str, Entry] = field(default_factory=dict)
    policies: dict[str, dict[str, Document]] = field(default_factory=dict)
    """Principal -> its policies by their ARN."""
    addons: dict[str, Thing] = field(default_factory=dict)
    associations: dict[str, Thing] = field(default_factory=dict)
    groups: dict[str, Thing] = field(default_factory=dict)
    updates: dict[str, Update] = field(default_factory=dict)
    group_id: str = ""
    interface_ids: list[str] = field(default_factory=list)
    is_bootstrapped: bool = True
    """Whether EKS has put a network for pods into it that is no add-on."""

    @property
    def name(self) -> str:
        """Name of the thing."""
        return str(self.document["name"])

    @property
    def has_pod_network(self) -> bool:
        """Whether nodes become ready in it."""
        return self.is_bootstrapped or "vpc-cni" in self.addons

    def require(self) -> None:
        """Raises unless it is active or being updated."""
        if self.document["status"] not in {"ACTIVE", "UPDATING"}:
            raise bad_request(f"Cluster '{self.name}' is not in ACTIVE status", clusterName=self.name)

    def settle(self) -> bool:
        """See ``Thing``; its parts first."""
        for things in (self.updates, self.groups, self.addons):
            for key in [key for key, thing in things.items() if thing.settle()]:
                del things[key]
        return Thing.settle(self)


class ControlPlanes(Protocol):
    """Player of the control planes of EKS's clusters."""

    def begin(self, account: str, region: str, cluster: Document) -> tuple[str, str] | None:
        """URL and authority (PEM) of the API of a new cluster; None while it starts. Raises an error when it does
        not."""

    def update(self, account: str, region: str, cluster: Document) -> None:
        """The cluster has another version."""

    def end(self, account: str, region: str, cluster: Document) -> None:
        """The cluster is gone."""


class NobodyThere:
    """Endpoints without anybody behind them, as tests of calls to EKS alone need them."""

    def begin(self, account: str, region: str, cluster: Document) -> tuple[str, str]:  # noqa: ARG002
        """See ``ControlPlanes``."""
        return f"https://{mock_random.get_random_hex(32).upper()}.gr7.{region}.eks.amazonaws.com", _authority()

    def update(self, account: str, region: str, cluster: Document) -> None:
        """See ``ControlPlanes``."""

    def end(self, account: str, region: str, cluster: Document) -> None:
        """See ``ControlPlanes``."""


_insights: list[Sequence[Document]] = []


@contextmanager
def planned_insights(insights: Sequence[Document]) -> Iterator[None]:
    """While it is open, ``ListInsights`` says this of every cluster: fields as of an insight, with a plain status."""
    _insights.append(insights)
    try:
        yield
    finally:
        _insights.remove(insights)


_players: list[ControlPlanes] = [NobodyThere()]


def player() -> ControlPlanes:
    """Current player of the control planes."""
    return _players[-1]


@contextmanager
def played_control_planes(planes: ControlPlanes) -> Iterator[None]:
    """Give new clusters the API of ``planes`` while the context is open."""
    _players.append(planes)
    try:
        yield
    finally:
        _players.remove(planes)


@cache
def _authority() -> str:
    """The certificate of an authority, whose key nobody has."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1)
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    builder = builder.not_valid_before(begin).not_valid_after(begin + timedelta(days=3650))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    return builder.sign(key, SHA256()).public_bytes(Encoding.PEM).decode()


class Eks(BaseBackend):  # type: ignore[misc]
    """EKS of one account and region: its clusters and what all operations use."""

    def __init__(self, region_name: str, account_id: str) -> None:
        super().__init__(region_name, account_id)
        self.clusters: dict[str, Cluster] = {}
        self.tokens: dict[tuple[str, str], tuple[str, Document]] = {}
        self.caller = ""

    @property
    def insights(self) -> list[Document]:
        """Insights of the plan."""
        return [insight for insights in _insights for insight in insights]

    def settle(self) -> None:
        """Do what has its time behind it."""
        for name in [name for name, cluster in self.clusters.items() if cluster.settle()]:
            del self.clusters[name]

    def cluster(self, parameters: Mapping[str, Any]) -> Cluster:
        """The cluster that the parameters name. Raises ``ServiceRefusal``."""
        name = parameters.get("clusterName") or parameters["name"]
        if name not in self.clusters:
            raise missing(f"No cluster found for name: {name}.", clusterName=name)
        return self.clusters[name]

    def arn(self, *parts: str) -> str:
        """An ARN of EKS."""
        return f"arn:aws:eks:{self.region_name}:{self.account_id}:{'/'.join(parts)}"

    def require_role(self, arn: str, service: str) -> None:
        """Raises ``ServiceRefusal`` unless there is such a role and the service may assume it."""
        roles = iam_backends[self.account_id]["aws"].roles.values()
        role = next((role for role in roles if role.arn == arn), None)
        if role is None or not trusts(_policy(role), service, {}):
            raise bad_parameter(
                f"Role with arn: {arn}, could not be assumed because it does not exist or the trusted entity is not "
                "correct"
            )

    def begin_update(
        self,
        cluster: Cluster,
        kind: str,
        params: Mapping[str, Any],
        pace_of: str,
        change: Callable[[], None],
        part: tuple[str, str] = ("", ""),
    ) -> Update:
        """The record of an update that is successful when the change of that pace is done."""
        update = Update(
            {
                "id": str(mock_random.uuid4()),
                "type": kind,
                "params": [{"type": name, "value": str(value)} for name, value in params.items()],
                "createdAt": pace.moment(),
                "errors": [],
            },
            part=part,
        )

        def done() -> bool:
            change()
            return update.become("Successful")

        update.begin("InProgress", pace_of, done)
        cluster.updates[update.document["id"]] = update
        return update


def _policy(role: Any) -> Mapping[str, Any]:
    document: Mapping[str, Any] = json.loads(role.assume_role_policy_document or "{}")
    return document


def paged(items: Sequence[Any], parameters: Mapping[str, Any]) -> tuple[list[Any], Document]:
    """One page of a list, and the member that names the next one."""
    first = int(parameters.get("nextToken") or 0)
    end = first + min(int(parameters.get("maxResults") or PAGE), PAGE)
    return list(items[first:end]), ({"nextToken": str(end)} if end < len(items) else {})


def encoded(pem: str) -> str:
    """A certificate as EKS tells it."""
    return base64.b64encode(pem.encode()).decode()
