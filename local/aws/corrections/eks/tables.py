"""Offers of EKS: versions of Kubernetes and of add-ons, and policies. As AWS had them in November of 2026."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from stockyard.adapters import catalog

_DATA = json.loads((Path(catalog.__file__).parent / "data" / "eks_versions.json").read_text(encoding="utf-8"))
_PATCHES = {"1.36": 1, "1.35": 4, "1.34": 6, "1.33": 9, "1.32": 12, "1.31": 14}
VERSIONS: Mapping[str, tuple[str, str, str, str]] = {
    version: (release, standard, extended, f"{version}.{_PATCHES.get(version, 0)}")
    for version, release, standard, extended in _DATA["versions"]
}
"""Version -> days of its release, of the end of standard and of extended support, and its patch. The days are those of
the product's own data, so that both are refreshed at once."""
EXTENDED = frozenset(version for version, days in VERSIONS.items() if days[1] <= _DATA["as_of"])
"""Versions out of standard support."""
DEFAULT_VERSION = "1.35"
ADDONS: Mapping[str, Sequence[str]] = {
    "vpc-cni": ("v1.21.1-eksbuild.3", "v1.20.5-eksbuild.1"),
    "kube-proxy": ("v{patch}-eksbuild.2", "v{minor}.0-eksbuild.2"),
    "coredns": ("v1.13.2-eksbuild.1", "v1.12.4-eksbuild.1"),
    "eks-pod-identity-agent": ("v1.3.10-eksbuild.2", "v1.3.9-eksbuild.3"),
    "aws-efs-csi-driver": ("v2.3.0-eksbuild.1", "v2.1.15-eksbuild.1"),
    "aws-ebs-csi-driver": ("v1.55.0-eksbuild.1", "v1.54.0-eksbuild.1"),
}
"""Name -> versions, the default one first; those of kube-proxy follow the cluster's."""
NEEDS_NODES = frozenset({"coredns", "aws-efs-csi-driver", "aws-ebs-csi-driver"})
"""Add-ons with a Deployment, which no pod of can run without a node."""
POLICY_ARN = "arn:aws:eks::aws:cluster-access-policy/"
POLICIES: Sequence[str] = (
    "AmazonEKSAdminPolicy",
    "AmazonEKSAdminViewPolicy",
    "AmazonEKSClusterAdminPolicy",
    "AmazonEKSEditPolicy",
    "AmazonEKSViewPolicy",
)


def minor(version: str) -> int:
    """The second number of a version."""
    return int(version.split(".")[1])


def addon_versions(name: str, cluster_version: str) -> tuple[str, ...]:
    """The versions of an add-on for a version of Kubernetes, the default one first."""
    patch = VERSIONS[cluster_version][3]
    return tuple(text.format(patch=patch, minor=cluster_version) for text in ADDONS.get(name, ()))


def release_version(cluster_version: str) -> str:
    """The newest release of the machine images for a version."""
    return f"{VERSIONS[cluster_version][3]}-20260512"
