"""Clusters as callers see them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, RootModel

from stockyard.domain.models.base import View
from stockyard.domain.models.manifest_views import ManifestView
from stockyard.domain.models.plan import PlanView, Remark


class ConditionView(View):
    """One observed aspect of a resource (Kubernetes API conventions)."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str
    last_transition_time: str


class ClusterView(View):
    """One Kubernetes cluster. ``phase`` is the running phase or null; ``operation_id`` the last operation. ``bastion``:
    the public address of the machine that is the way in for SSH, empty where there is none. ``last_snapshot``: the id
    of the newest snapshot of etcd in the cluster's cloud, empty for none. ``reason`` and ``message`` say why it failed,
    or is degraded; empty while all is well. ``warnings`` are those of a creation or a change, in its answer alone."""

    id: str
    name: str
    description: str
    cluster_type: str
    kubernetes_version: str
    provider: str
    cloud_account_id: int
    client_id: str
    status: Literal["preparing", "ready", "failed", "deleting"]
    phase: str | None
    reason: str
    message: str
    conditions: list[ConditionView]
    settings: dict[str, Any]
    bastion: str
    certificates_expire_at: str | None
    last_snapshot: str
    keep_failed: int
    kept_until: str | None
    tags: dict[str, str]
    created_at: str
    updated_at: str
    version: int
    operation_id: str | None
    queue: list[str]
    """Operations that begin one after the other when that one has ended."""
    warnings: list[Remark]


class RepaveReason(View):
    """Why nodes are replaced. ``pool`` where it is for the nodes of one pool."""

    code: str
    message: str
    pool: str | None = None


class RepaveView(View):
    """Whether the last change of a cluster replaces nodes, and whether somebody has approved of it. ``nodes`` are those
    of before that are still there."""

    state: Literal["None", "Pending", "Approved", "Reverted"]
    reasons: list[RepaveReason]
    nodes: list[str]
    operation_id: str | None


class CertificatesView(View):
    """When the certificates of a cluster's control plane end. ``renewed_since``: members that were made before have
    been replaced, or are being replaced by ``operation_id``."""

    expire_at: str | None
    renewed_since: str | None
    operation_id: str | None


class SnapshotView(View):
    """A snapshot of a cluster's etcd in its cloud. ``taken_at`` begins the time that it stands for, and ``stored_at``
    is when it had arrived."""

    id: str
    taken_at: str
    stored_at: str
    size: int


class SnapshotFailure(View):
    """Why a member could not take a snapshot the last time."""

    at: str
    message: str


class SnapshotsView(View):
    """The snapshots of a cluster's etcd, the newest first, and where they are. ``failure`` is null when the last try
    was a good one."""

    items: list[SnapshotView]
    place: str
    interval_hours: int
    keep: int
    failure: SnapshotFailure | None


class ForcedDeletionView(View):
    """A cluster that was forgotten though its deletion had not ended, and what may be left of it."""

    id: str
    name: str
    operation_id: str
    remaining: list[str]


class DeletionDocument(RootModel[PlanView | ForcedDeletionView]):
    """The plan of a deletion, or what a forced one has left."""


class ClusterDocument(RootModel[ClusterView | ManifestView]):
    """A cluster, or with ``form=manifest`` the cluster as a manifest of its driver's form."""


class TreeNode(View):
    """One thing of a cluster and what is below it.

    ``usd_hour`` is what a node costs, or all nodes of a pool or of the cluster; null for other things and while a price
    is not known. ``type`` is the node type of a claim.
    """

    kind: str
    name: str
    id: str | None = None
    status: str
    message: str = ""
    type: str = ""
    usd_hour: float | None = None
    children: list[TreeNode] = Field(default_factory=list)


class KubeconfigView(View):
    """A kubeconfig as YAML text; its user is an ``exec`` of the command line unless asked for otherwise."""

    kubeconfig: str


class KubeconfigSecretView(View):
    """A Secret as ``kubectl apply -f`` takes it, with a kubeconfig under the key ``kubeconfig``."""

    api_version: Literal["v1"] = Field("v1", alias="apiVersion")
    kind: Literal["Secret"] = "Secret"
    metadata: dict[str, Any]
    type: Literal["Opaque"] = "Opaque"
    data: dict[str, str]


class KubeconfigDocument(RootModel[KubeconfigView | KubeconfigSecretView]):
    """The text of a kubeconfig, or a Secret that holds it."""


class CredentialStatus(View):
    """A token and when it ends."""

    token: str
    expires_at: str = Field(alias="expirationTimestamp")


class ExecCredentialView(View):
    """What ``kubectl`` takes from a plugin that a kubeconfig names."""

    api_version: Literal["client.authentication.k8s.io/v1"] = Field(alias="apiVersion")
    kind: Literal["ExecCredential"] = "ExecCredential"
    status: CredentialStatus


class ClientSecretView(View):
    """The Keycloak client of a cluster and its current secret."""

    client_id: str
    client_secret: str
