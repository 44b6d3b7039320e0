"""Answers of the API about cloud accounts, clusters, operations and events, and plans.

Made from the contract by ``local.openapi``.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from stockyard_client.base_models import Model, Resource
from stockyard_client.part_models import Condition
from stockyard_client.states import OperationState


class CloudAccount(Resource):
    """A cloud account, without its secrets."""

    id: int
    """The number of the account within the tenant."""
    provider: str
    """The cloud that the account is in."""
    name: str = ""
    """The name of the account, unique in the tenant."""
    description: str = ""
    """Free text for people."""
    attributes: dict[str, Any] = Field(default_factory=dict)
    """How Stockyard gets into the account, without the secrets."""
    secrets: tuple[str, ...] = ()
    """The names of the attributes that are kept sealed and are never shown."""
    external_id: str = ""
    """Belongs into the trust policy of the account's role; it is no secret."""
    verification: str | None = None
    """What the last verification found."""
    verification_message: str | None = None
    """Why the last verification failed; empty when it did not."""
    verified_at: str | None = None
    """When the account was verified last; null when it never was."""
    warnings: tuple[str, ...] = ()
    """What the last verification warns of, an old template for example."""
    tags: dict[str, str] = Field(default_factory=dict)
    """Tags by key."""
    created_at: str | None = None
    """When it was made: RFC 3339 in UTC."""
    updated_at: str | None = None
    """When it was changed last: RFC 3339 in UTC."""


class Cluster(Resource):
    """One Kubernetes cluster."""

    id: str
    """The id of the cluster; it never changes."""
    name: str
    """The name of the cluster, unique in the tenant."""
    status: str
    """Where the cluster is in its life."""
    description: str = ""
    """Free text for people."""
    cluster_type: str = "k8s"
    """What kind of cluster it is."""
    kubernetes_version: str = ""
    """The minor of Kubernetes that it has, or is to have."""
    provider: str = ""
    """The cloud that it is in."""
    driver: str = ""
    """Who makes it: the cluster driver."""
    cloud_account_id: int | None = None
    """The number of the cloud account that it is in."""
    client_id: str = ""
    """The Keycloak client of the cluster."""
    endpoint: str | None = None
    """The address of its Kubernetes API; null before it is known."""
    phase: str | None = None
    """The phase that runs now; null when none does."""
    reason: str = ""
    """Why it has failed, or is degraded, in a word; empty while all is well."""
    message: str = ""
    """The same as a sentence."""
    conditions: tuple[Condition, ...] = ()
    """What is observed of the cluster, an aspect each."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """The settings with all defaults filled in; which there are depends on the driver."""
    vpn: bool = False
    """Whether it has an overlay, so that nodes of other networks can be in it: `privateNodes.vpn.enabled` of a
    vcluster.yaml."""
    node_to_node: bool = False
    """Whether these reach each other: `nodeToNode.enabled`, which each overlay has."""
    bastion: str = ""
    """The public address of the machine that is the way in for SSH; empty where there is none."""
    certificates_expire_at: str | None = None
    """When the first certificate of the control plane ends; null while that is not known."""
    last_snapshot: str = ""
    """The id of the newest snapshot of etcd in the cluster's cloud; empty for none."""
    keep_failed: int = 0
    """For how many minutes a control plane is kept that did not come up."""
    kept_until: str | None = None
    """Until when a machine that did not come up is kept; null when none is."""
    expires_at: str | None = None
    """When its deletion begins by itself; null for never."""
    kubeconfig_secret: dict[str, Any] | None = None
    """The Secret with its kubeconfig that an agent keeps fresh; null for none."""
    tags: dict[str, str] = Field(default_factory=dict)
    """Tags by key."""
    limits: dict[str, str] = Field(default_factory=dict)
    """What the cluster may have with its nodes: `usd_month`, what a month may cost in USD."""
    created_at: str | None = None
    """When it was made: RFC 3339 in UTC."""
    updated_at: str | None = None
    """When it was changed last: RFC 3339 in UTC."""
    operation_id: str | None = None
    """The last operation on the cluster; null before the first."""
    queue: tuple[str, ...] = ()
    """Operations that begin one after the other when that one has ended."""
    warnings: tuple[dict[str, Any], ...] = ()
    """What to mind of a creation or a change; only in the answer to that."""
    costs: dict[str, Any] | None = None
    """Nodes and costs; null where `costs` was not in the request for a list, and of a cluster without any."""
    price: Price | None = None
    """What the cluster costs as its plan has it; only in the answer to its creation."""


class Phase(Model):
    """Progress of one phase."""

    name: str
    """The name of the phase."""
    state: str
    """Where the phase is."""
    started_at: str | None = None
    """When it began; null before."""
    ended_at: str | None = None
    """When it ended; null before."""
    attempt: int = 1
    """Which try of the operation ran it last."""
    message: str = ""
    """What it waits for, has made, or why it failed."""


class OperationError(Model):
    """Reason why an operation failed: the phase, the cause, and what a person can do."""

    error_type: str
    """The type of the error, as in a problem document."""
    phase: str = ""
    """The phase that failed."""
    cause: str = ""
    """Why it failed."""
    hint: str = ""
    """What a person can do; empty for nothing."""
    cause_type: str = ""
    """The name of the error behind it, such as `VendorQuotaExceeded`; empty when there was none."""
    console: str = ""
    """What the console of a machine showed last that did not come up; empty for nothing."""


class OperationFailure(Model):
    """End of an earlier attempt of an operation, which a resume or a retry has followed."""

    attempt: int
    """Which try it was, from 1."""
    failed_at: str | None = None
    """When it ended."""
    phase: str = ""
    """The phase that failed."""
    error_type: str = ""
    """The type of the error, as in a problem document."""
    cause: str = ""
    """Why it failed."""
    hint: str = ""
    """What a person could do; empty for nothing."""
    cause_type: str = ""
    """The name of the error behind it, such as `VendorQuotaExceeded`; empty when there was none."""


class Run(Model):
    """A program's work for an operation, such as a machine's first boot. ``GET /v1/operations/{id}/log`` has its
    output."""

    name: str
    """What ran: `console` is what the console of a machine showed that did not come up."""
    attempt: int = 1
    """Which try of the operation it is of."""
    phase: str = ""
    """The phase that it is of."""
    started_at: str | None = None
    """When it began."""
    ended_at: str | None = None
    """When it ended; null before."""
    error: str | None = None
    """Why it failed; null where it did not, or runs."""


class LogLine(Model):
    """One line that a run has printed."""

    run: str
    """The name of the run."""
    attempt: int = 1
    """Which try of the operation it is of."""
    number: int = 0
    """The line's number within the run, from 1."""
    time: str | None = None
    """When it came to us."""
    text: str = ""
    """The line in printable characters, without what looks like a secret."""


class Operation(OperationState, Resource):
    """One long-running change of a resource."""

    id: str
    """The id of the operation; ids rise with time."""
    kind: str
    """What it does, such as `create_cluster`."""
    subject: str
    """The id of the resource that it changes."""
    status: str
    """Where it is. A `queued` one begins when those before it have ended; a `reverted` one was not approved, and
    somebody has stopped a `cancelled` one."""
    subject_name: str = ""
    """What that resource is called, even when it is gone; empty where it has no name."""
    phases: tuple[Phase, ...] = ()
    """Its phases, in order."""
    runs: tuple[Run, ...] = ()
    """The programs that have worked for it, in the order in which they began."""
    changes: tuple[dict[str, Any], ...] = ()
    """What a change of a ready cluster brings about; a failed one shows what stood before."""
    error: OperationError | None = None
    """Why it failed; null when it did not."""
    failures: tuple[OperationFailure, ...] = ()
    """How its earlier attempts ended, the oldest first: they stay when a resume has succeeded. At most ten."""
    progress: int = 0
    """How far it is, in percent."""
    created_at: str | None = None
    """When it was made: RFC 3339 in UTC."""
    updated_at: str | None = None
    """When it was changed last: RFC 3339 in UTC."""


class Event(Model):
    """Event in the life of a resource."""

    id: str
    """The id of the event; ids rise with time."""
    subject: str
    """The id of the resource that it happened to."""
    tenant: str = ""
    """The tenant that the subject belongs to."""
    sequence: int = 0
    """Rises with each event of the subject."""
    time: str | None = None
    """When it happened."""
    actor: str | None = None
    """Who made it happen: a person, a client or Stockyard itself."""
    detail_type: str = ""
    """What kind of resource that is."""
    phase: dict[str, Any] = Field(default_factory=dict)
    """The phases before and after."""
    reason: str = ""
    """A word for programs that says what happened."""
    message: str = ""
    """The same as a sentence for people."""
    name: str | None = None
    """The name of a node claim or a cluster, of an operation that of its subject, which tells them also when they are
    gone; null for other subjects."""
    cluster_id: str | None = None
    """The cluster of a node or a pool; null for other subjects."""
    pool: str | None = None
    """The pool of a node; null for others."""
    zone: str | None = None
    """The zone of a pool's node, once it is known; else null."""


class Price(Model):
    """Cost of the plan."""

    currency: str = "USD"
    """The currency of all prices."""
    hour: float | None = None
    """The sum of an hour; null where the price of a line is not known."""
    month: float | None = None
    """The sum of a month of 730 hours; null where the price of a line is not known."""
    complete: bool = True
    """False when a line has no known price."""
    known_hour: float = 0.0
    """What of an hour is known: the sum is at least that."""
    known_month: float = 0.0
    """What of a month of 730 hours is known."""
    items: tuple[dict[str, Any], ...] = ()
    """The lines that make the sum."""


class Plan(Model):
    """The resources to make, to change and to remove, the costs, and the rejected types with the reasons."""

    verdict: str = ""
    """One sentence that comes first: what was chosen or why nothing fits, what a deletion removes and saves; empty of
    other plans."""
    groups: tuple[dict[str, Any], ...] = ()
    """The node types that do not fit, by the rule that excluded them; `rejected` has up to 200 one by one."""
    creates: tuple[Any, ...] = ()
    """What would be made."""
    changes: tuple[Any, ...] = ()
    """The fields that would change."""
    deletes: tuple[Any, ...] = ()
    """What would be removed."""
    price: Price | None = None
    """What it costs then; of a deletion what is saved."""
    price_before: Price | None = None
    """What is paid now, of a change that has a price; else null."""
    steps: tuple[str, ...] = ()
    """Of a change of a ready cluster: what happens, in order."""
    rejected: tuple[Any, ...] = ()
    """What was ruled out, and why."""
    warnings: tuple[Any, ...] = ()
    """What to mind."""
    unnamed: tuple[dict[str, Any], ...] = ()
    """Of manifests of a set: what it has applied before, is still there, and no document names. It stays."""
    run: dict[str, Any] | None = None
    """Of a claim, where `run` was given: the run that would make its node; null where no template makes it."""
