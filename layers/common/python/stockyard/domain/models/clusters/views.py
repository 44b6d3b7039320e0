"""Clusters as callers see them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, RootModel

from stockyard.domain.models.base import View
from stockyard.domain.models.manifests.views import ManifestView
from stockyard.domain.models.plan import PlanView, Price, Remark
from stockyard.domain.models.view_fields import CreatedAt, UpdatedAt, Version
from stockyard.domain.values.states import RepaveState, ShownClusterStatus, Truth


class ConditionView(View):
    """One observed aspect of a resource (Kubernetes API conventions)."""

    type: str
    """What is observed, such as ``Ready``."""
    status: Truth
    """Whether it is so."""
    reason: str
    """A word for programs that says why."""
    message: str
    """A sentence for people that says why; may be empty."""
    last_transition_time: str
    """When ``status`` changed last."""


class KeptSecretView(View):
    """A Secret with the cluster's kubeconfig, which the agent of the cluster that it stands in keeps fresh."""

    cluster_id: str
    """The id of the cluster that the Secret stands in."""
    cluster: str
    """The name of that cluster."""
    namespace: str
    """The namespace of the Secret."""
    role: str
    """What its token may do: viewer, operator or admin."""


class ClusterCostsView(View):
    """Costs of a cluster with its nodes, from list prices: an estimate, no bill."""

    as_of: str
    """Until when what has happened to the cluster is counted; mostly less than a minute ago."""
    nodes: int
    """How many nodes stand or are about to, without the control plane's."""
    hour: float
    """USD an hour of what stands, as far as prices are known."""
    month_rate: float
    """The same in a month of 730 hours."""
    spent: float
    """USD since the month began, with what is gone."""
    complete: bool
    """Whether every price is known."""


class ClusterView(View):
    """One Kubernetes cluster."""

    id: str
    """The id of the cluster; it never changes."""
    name: str
    """The name of the cluster, unique in the tenant."""
    description: str
    """Free text for people."""
    cluster_type: str
    """What kind of cluster it is."""
    kubernetes_version: str
    """The minor of Kubernetes that it has, or is to have."""
    provider: str
    """The cloud that it is in."""
    driver: str
    """Who makes it: the cluster driver."""
    cloud_account_id: int
    """The number of the cloud account that it is in."""
    client_id: str
    """The Keycloak client of the cluster."""
    endpoint: str | None
    """The address of its Kubernetes API; null before it is known."""
    status: ShownClusterStatus
    """Where the cluster is in its life."""
    phase: str | None
    """The phase that runs now; null when none does."""
    reason: str
    """Why it has failed, or is degraded, in a word; empty while all is well."""
    message: str
    """The same as a sentence."""
    conditions: list[ConditionView]
    """What is observed of the cluster, an aspect each."""
    settings: dict[str, Any]
    """The settings with all defaults filled in; which there are depends on the driver."""
    vpn: bool
    """Whether it has an overlay, so that nodes of other networks can be in it: ``privateNodes.vpn.enabled`` of a
    vcluster.yaml."""
    node_to_node: bool
    """Whether these reach each other: ``nodeToNode.enabled``, which each overlay has."""
    bastion: str
    """The public address of the machine that is the way in for SSH; empty where there is none."""
    certificates_expire_at: str | None
    """When the first certificate of the control plane ends; null while that is not known."""
    last_snapshot: str
    """The id of the newest snapshot of etcd in the cluster's cloud; empty for none."""
    keep_failed: int
    """For how many minutes a control plane is kept that did not come up."""
    kept_until: str | None
    """Until when a machine that did not come up is kept; null when none is."""
    expires_at: str | None
    """When its deletion begins by itself; null for never."""
    kubeconfig_secret: KeptSecretView | None
    """The Secret with its kubeconfig that an agent keeps fresh; null for none."""
    tags: dict[str, str]
    """Tags by key."""
    limits: dict[str, str]
    """What the cluster may have with its nodes: ``usd_month``, what a month may cost in USD."""
    created_at: CreatedAt
    updated_at: UpdatedAt
    version: Version
    operation_id: str | None
    """The last operation on the cluster; null before the first."""
    queue: list[str]
    """Operations that begin one after the other when that one has ended."""
    warnings: list[Remark]
    """What to mind of a creation or a change; only in the answer to that."""
    costs: ClusterCostsView | None
    """Nodes and costs; null where ``costs`` was not in the request for a list, and of a cluster without any."""
    price: Price | None
    """What the cluster costs as its plan has it; only in the answer to its creation."""


class RepaveReason(View):
    """Reason why nodes are replaced."""

    code: str
    """A word for programs that says why nodes are replaced."""
    message: str
    """The same as a sentence for people."""
    pool: str | None = None
    """The pool whose nodes are replaced; null for all."""


class RepaveView(View):
    """Whether the last change of a cluster replaces nodes, and whether somebody has approved of it."""

    state: RepaveState
    """Whether the change waits for approval, and what became of it."""
    reasons: list[RepaveReason]
    """Why nodes are replaced."""
    nodes: list[str]
    """The nodes of before that are still there."""
    operation_id: str | None
    """The operation of the change; null for none."""


class CertificatesView(View):
    """End of the certificates of a cluster's control plane, and whether they are being renewed."""

    expire_at: str | None
    """When the first of them ends; null while that is not known."""
    renewed_since: str | None
    """Members that were made before have been replaced, or are being replaced; null for never."""
    operation_id: str | None
    """The operation that replaces them; null for none."""


class SnapshotView(View):
    """A snapshot of a cluster's etcd in its cloud."""

    id: str
    """The id of the snapshot, which is when it was taken."""
    taken_at: str
    """The moment that the snapshot shows."""
    stored_at: str
    """When it had arrived in the store."""
    size: int
    """Its size in bytes."""


class SnapshotFailure(View):
    """Reason why a member could not take a snapshot the last time."""

    at: str
    """When that was."""
    message: str
    """What the machine said."""


class SnapshotsView(View):
    """The snapshots of a cluster's etcd, and where they are."""

    items: list[SnapshotView]
    """The snapshots, the newest first."""
    place: str
    """Where they are; empty where none are taken."""
    interval_hours: int
    """How many hours lie between two snapshots."""
    keep: int
    """How many of them stay."""
    failure: SnapshotFailure | None
    """Why the last try failed; null when it was a good one."""


class ForcedDeletionView(View):
    """A cluster that was forgotten before the end of its deletion, with all possible leftovers."""

    id: str
    """The id of the cluster."""
    name: str
    """The name of the cluster."""
    operation_id: str
    """The deletion that had not ended."""
    remaining: list[str]
    """What may be left in the cloud."""


class DeletionDocument(RootModel[PlanView | ForcedDeletionView]):
    """The plan of a deletion, or what a forced one has left."""


class ClusterDocument(RootModel[ClusterView | ManifestView]):
    """A cluster, or with ``form=manifest`` the cluster as a manifest of its driver's form."""


class TreeNode(View):
    """One thing of a cluster and what is below it."""

    kind: str
    """What it is, such as ``pool`` or ``node claim``."""
    name: str
    """Its name."""
    id: str | None = None
    """Its id; null where it has none."""
    status: str
    """How it is, in one word."""
    message: str = ""
    """What else is to be said of that; may be empty."""
    type: str = ""
    """The node type of a claim; empty for other things."""
    usd_hour: float | None = None
    """USD an hour of a node, or of all nodes of a pool or of the cluster; null for other things and while a price is
    not known."""
    owned: bool = False
    """Whether a node's machine is its owner's anyway, so that nothing is paid where ``usd_hour`` is 0."""
    children: list[TreeNode] = Field(default_factory=list)
    """What is below it."""


class KubeconfigView(View):
    """A kubeconfig as YAML text; its user is an ``exec`` of the command line unless asked for otherwise."""

    kubeconfig: str
    """The kubeconfig as YAML."""


class KubeconfigSecretView(View):
    """A Secret as ``kubectl apply -f`` takes it, with a kubeconfig under the key ``kubeconfig``."""

    api_version: Literal["v1"] = Field("v1", alias="apiVersion")
    """The version of the object's form."""
    kind: Literal["Secret"] = "Secret"
    """The kind of the object."""
    metadata: dict[str, Any]
    """The name and the labels of the Secret."""
    type: Literal["Opaque"] = "Opaque"
    """The type of the Secret."""
    data: dict[str, str]
    """The kubeconfig under the key ``kubeconfig``, in base64."""


class KubeconfigDocument(RootModel[KubeconfigView | KubeconfigSecretView]):
    """The text of a kubeconfig, or a Secret that holds it."""


class CredentialStatus(View):
    """A token and when it ends."""

    token: str
    """The token that the API server of the cluster takes."""
    expires_at: str = Field(alias="expirationTimestamp")
    """When the token ends."""


class ExecCredentialView(View):
    """Credential that ``kubectl`` takes from a plugin of a kubeconfig."""

    api_version: Literal["client.authentication.k8s.io/v1"] = Field(alias="apiVersion")
    """The version of the object's form."""
    kind: Literal["ExecCredential"] = "ExecCredential"
    """The kind of the object."""
    status: CredentialStatus
    """The token and when it ends."""


class ClientSecretView(View):
    """The Keycloak client of a cluster and its current secret."""

    client_id: str
    """The name of the client."""
    client_secret: str
    """The secret of the client. Reading it is audited."""
