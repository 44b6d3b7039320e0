"""Clusters as documents of another product's form: what such a document asks for, and who reads and writes the form.

Which forms there are say the cluster drivers: see ``cloud_kinds.ManifestKind``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from stockyard.domain.clusters.change import Expiry, SecretRequest
from stockyard.domain.nodes.manifests import FieldPath
from stockyard.domain.pools.records import NewPool
from stockyard.domain.records import Cluster

ACCOUNT = "stockyard.dev/cloud-account"
"""The label by which a manifest names its cloud account, by number or name."""
DESCRIPTION = "stockyard.dev/description"
"""The annotation with a cluster's description."""
NAME = "name"
"""In the document of a cluster: what its manifest calls it, where the tenant has another cluster of that name."""
SECRET_CLUSTER, SECRET_ROLE = "stockyard.dev/kubeconfig-secret", "stockyard.dev/kubeconfig-role"
"""Annotations that ask for a Secret with the cluster's kubeconfig: the name of the cluster that it is to stand in, or
``NO_SECRET``; and what its token may do."""
NO_SECRET = "none"  # noqa: S105 - no secret at all


@dataclass(frozen=True, slots=True)
class ClusterDocument:
    """A cluster that a manifest asks for.

    ``settings`` are those that the manifest says, as a request would have them. ``kubernetes_version``, ``namespace``
    and ``account`` are empty where it says none. ``document`` is what the record keeps beside the settings, so that the
    manifest can be shown again.
    """

    name: str
    kind: str
    cloud: str
    cluster_type: str
    driver: str
    settings: dict[str, Any]
    description: str
    kubernetes_version: str = ""
    namespace: str = ""
    default_namespace: str | None = None
    """The namespace of a manifest that names none, where the form has namespaces: a name is one in its namespace then.
    None: the form has none, and a name is what the cluster is called in the tenant."""
    account: str = ""
    account_path: FieldPath = ()
    """Where the manifest names the account, or could."""
    document: dict[str, Any] = field(default_factory=dict)
    tags: dict[str, str] | None = None
    """None where the form says none."""
    limits: dict[str, str] | None = None
    """None where the form says none."""
    profiles: tuple[Mapping[str, Any], ...] | None = None
    """The profiles that are chosen, as a request has them; None where the manifest says nothing of them."""
    is_described: bool = False
    """Whether the manifest says the description, so that one that is there gets it."""
    keep_failed: int | None = None
    """Minutes; None where the manifest says none."""
    expiry: Expiry | None = None
    """When its deletion begins by itself; None where the manifest says nothing of it."""
    secret: SecretRequest | None = None
    """The Secret with its kubeconfig; None where the manifest says nothing of it."""
    pools: tuple[NewPool, ...] = ()
    """The pools that come with the cluster, in the order of ``spec.pools``."""


class ClusterForm(Protocol):
    """The form of a kind of manifests."""

    def read_cluster(self, document: Any, at: FieldPath) -> ClusterDocument:
        """Read the manifest of a cluster at that place. ``InvalidInput`` with every fault below the place."""
        ...

    def wanted_settings(self, document: ClusterDocument, current: Mapping[str, Any] | None) -> dict[str, Any]:
        """The settings of a request for a new cluster, or those that a cluster with the ``current`` ones is to have:
        what the form cannot say stays."""
        ...

    def cluster_manifest(self, cluster: Cluster, profiles: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
        """The cluster as a manifest, with its status. Its profiles are in it where the form can say them."""
        ...

    def path_of(self, pointer: str) -> str:
        """The pointer into a manifest to what is at this pointer into a request."""
        ...
