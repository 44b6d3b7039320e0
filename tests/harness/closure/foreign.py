"""An account with things that are not ours: the tenant's own, those of other clusters, and of another installation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from tests.harness.closure.changes import TAGGED_EC2

ACCOUNT, INSTALLATION, OTHER_INSTALLATION, PREFIX = "222222222222", "inst-1", "inst-2", "vantage"
OUR_TAG = "stockyard:installation"
_TAGS: Mapping[str, Mapping[str, str]] = {
    "plain": {},
    "tagged": {"team": "a", "Name": "production"},
    "other-cluster": {
        "aws:eks:cluster-name": "production",
        "eks:cluster-name": "production",
        "eks:nodegroup-name": "workers",
        "eks:eni:owner": "amazon-vpc-cni",
        "cluster.k8s.amazonaws.com/name": "production",
        "kubernetes.io/cluster/production": "owned",
        "kubernetes.io/service-name": "default/web",
        "elbv2.k8s.aws/cluster": "production",
        "ebs.csi.aws.com/cluster": "true",
        "ebs.csi.aws.com/cluster-name": "production",
        "efs.csi.aws.com/cluster": "true",
    },
    "other-installation": {OUR_TAG: OTHER_INSTALLATION, f"{PREFIX}-cluster": "else"},
}
"""Whose a thing is -> its tags. Another installation of the same prefix works in the account, too."""


@dataclass(frozen=True)
class Thing:
    """Something in the account. ``kind`` is its service and type as the table of changes names them."""

    kind: str
    whose: str
    arn: str
    tags: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.whose} {self.kind}"


def things() -> list[Thing]:
    """Everything that is not ours. What the template made is its owner's: our own role, and what bounds others."""
    names = ("role/stockyard", f"role/{PREFIX}-dlm-role"), (f"policy/{PREFIX}-node-boundary-1", f"policy/{PREFIX}-p")
    own = [
        Thing(kind, "template's", f"arn:aws:iam::{ACCOUNT}:{name}")
        for kind, group in zip(("iam:role", "iam:policy"), names, strict=True)
        for name in group
    ]
    return [*own, *(thing for whose in _TAGS for thing in _of(whose))]


def _of(whose: str) -> Iterator[Thing]:
    tags = _TAGS[whose]

    def thing(kind: str, service: str, resource: str, region: str = "us-east-1", account: str = ACCOUNT) -> Thing:
        return Thing(kind, whose, f"arn:aws:{service}:{region}:{account}:{resource}", tags)

    for kind in TAGGED_EC2:
        account = "" if kind == "snapshot" else ACCOUNT
        yield thing(f"ec2:{kind}", "ec2", f"{kind}/{kind}-0123456789abcdef0", account=account)
    # A cluster of another installation has a name as ours have; of an earlier release, too.
    name = f"{PREFIX}-c-0123456789ab-eks-12345" if whose == "other-installation" else "production"
    yield thing("autoscaling:group", "autoscaling", f"autoScalingGroup:1:autoScalingGroupName/eks-{name}-workers")
    yield thing("eks:cluster", "eks", f"cluster/{name}")
    for kind in ("access-entry", "addon", "nodegroup", "podidentityassociation"):
        yield thing(f"eks:{kind}", "eks", f"{kind}/{name}/a/1")
    for kind, path in (("loadbalancer", "net/a/1"), ("targetgroup", "a/1"), ("listener", "net/a/1/2")):
        yield thing(f"elb:{kind}", "elasticloadbalancing", f"{kind}/{path}")
    yield thing("elb:loadbalancer", "elasticloadbalancing", "loadbalancer/classic")
    yield thing("efs:file-system", "elasticfilesystem", "file-system/fs-1")
    yield thing("efs:access-point", "elasticfilesystem", "access-point/fsap-1")
    yield thing("dlm:policy", "dlm", "policy/policy-1")
    yield thing("s3:bucket", "s3", f"{whose}-data", "", "")
    yield thing("s3:object", "s3", f"{whose}-data/reports/1", "", "")
    yield thing("ssm:parameter", "ssm", "parameter/password")
    yield from _identities(whose, thing)


def _identities(whose: str, make: Callable[..., Thing]) -> Iterator[Thing]:
    stem = f"stockyard/{PREFIX}-else" if whose == "other-installation" else whose
    yield make("iam:role", "iam", f"role/{stem}-node-role", "")
    yield make("iam:instance-profile", "iam", f"instance-profile/{stem}-instance-profile", "")
    yield make("iam:user", "iam", f"user/{whose}", "")
    yield make("iam:policy", "iam", f"policy/{whose}", "")
