"""The kinds of objects that a simulated Kubernetes API serves, as discovery names them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind as discovery names it."""

    group: str
    version: str
    name: str
    kind: str
    namespaced: bool
    has_status: bool = False
    """Whether its status is a part that is written by itself."""
    short_names: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    """Subresources but for the status: ``scale``."""
    is_of_all: bool = False
    """Whether ``kubectl get all`` lists it."""
    verbs: tuple[str, ...] = ()
    """Verbs of the resource; without any, all that the API does."""
    columns: tuple[Mapping[str, Any], ...] = field(default=(), compare=False)
    """The columns that a definition names for tables."""
    schema: Mapping[str, Any] | None = field(default=None, compare=False)
    """The schema of a definition; None for Kubernetes' own kinds."""

    @property
    def api_version(self) -> str:
        """As objects write it: ``v1``, ``apps/v1``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def is_of(self, key: Any) -> bool:
        """Whether the object of that ``store.Key`` is one of it."""
        return bool((self.group, self.name) == (key.group, key.resource))


RBAC, ADMISSION = "rbac.authorization.k8s.io", "admissionregistration.k8s.io"
CERTIFICATES, EXTENSIONS = "certificates.k8s.io", "apiextensions.k8s.io"
AUTHORIZATION, AUTHENTICATION = "authorization.k8s.io", "authentication.k8s.io"
STORAGE = "storage.k8s.io"
_CREATE = ("create",)


def _core(
    name: str, kind: str, short: str = "", *, namespaced: bool = True, parts: str = "", all_: bool = False
) -> Resource:
    return Resource("", "v1", name, kind, namespaced, False, tuple(short.split()), tuple(parts.split()), all_)


def _workload(group: str, name: str, kind: str, short: str = "", parts: str = "") -> Resource:
    return Resource(group, "v1", name, kind, True, False, tuple(short.split()), tuple(parts.split()), True)


def _review(group: str, name: str, kind: str) -> Resource:
    return Resource(group, "v1", name, kind, False, verbs=_CREATE)


RESOURCES = (
    _core("namespaces", "Namespace", "ns", namespaced=False),
    _core("nodes", "Node", "no", namespaced=False),
    _core("pods", "Pod", "po", parts="eviction log exec attach portforward ephemeralcontainers", all_=True),
    _core("secrets", "Secret"),
    _core("configmaps", "ConfigMap", "cm"),
    _core("services", "Service", "svc", all_=True),
    _core("serviceaccounts", "ServiceAccount", "sa", parts="token"),
    _workload("apps", "deployments", "Deployment", "deploy", "scale"),
    _workload("apps", "daemonsets", "DaemonSet", "ds"),
    _workload("apps", "replicasets", "ReplicaSet", "rs", "scale"),
    _workload("apps", "statefulsets", "StatefulSet", "sts", "scale"),
    _workload("batch", "jobs", "Job"),
    _workload("batch", "cronjobs", "CronJob", "cj"),
    _core("persistentvolumeclaims", "PersistentVolumeClaim", "pvc"),
    _core("persistentvolumes", "PersistentVolume", "pv", namespaced=False),
    Resource(STORAGE, "v1", "storageclasses", "StorageClass", False, short_names=("sc",)),
    Resource(STORAGE, "v1", "csinodes", "CSINode", False),
    Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False, short_names=("pc",)),
    _core("limitranges", "LimitRange", "limits"),
    _core("resourcequotas", "ResourceQuota", "quota"),
    _core("events", "Event", "ev"),
    Resource("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", False),
    Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", True, short_names=("pdb",)),
    Resource("coordination.k8s.io", "v1", "leases", "Lease", True),
    Resource("networking.k8s.io", "v1", "ingresses", "Ingress", True, short_names=("ing",)),
    Resource(
        CERTIFICATES, "v1", "certificatesigningrequests", "CertificateSigningRequest", False,
        short_names=("csr",), parts=("approval",),
    ),
    Resource(EXTENSIONS, "v1", "customresourcedefinitions", "CustomResourceDefinition", False, False, ("crd",)),
    Resource(RBAC, "v1", "clusterroles", "ClusterRole", False),
    Resource(RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", False),
    Resource(RBAC, "v1", "roles", "Role", True),
    Resource(RBAC, "v1", "rolebindings", "RoleBinding", True),
    Resource(ADMISSION, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", False),
    Resource(ADMISSION, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", False),
    _review(AUTHORIZATION, "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    _review(AUTHORIZATION, "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
    _review(AUTHENTICATION, "selfsubjectreviews", "SelfSubjectReview"),
)  # fmt: skip


def defined(spec: Mapping[str, Any], version: Mapping[str, Any]) -> Resource:
    """Resource that a version of a definition adds to the API. It is served at once."""
    names, namespaced = spec["names"], spec["scope"] == "Namespaced"
    has_status = "status" in (version.get("subresources") or {})
    return Resource(
        spec["group"],
        version["name"],
        names["plural"],
        names["kind"],
        namespaced,
        has_status,
        short_names=tuple(names.get("shortNames") or ()),
        columns=tuple(version.get("additionalPrinterColumns") or ()),
        schema=(version.get("schema") or {}).get("openAPIV3Schema"),
    )
