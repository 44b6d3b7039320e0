"""The resources of an account in this process's moto, read from moto's own tables, where nothing is hidden."""

from __future__ import annotations

from typing import Any

from moto.ec2.models import ec2_backends
from moto.elbv2.models import elbv2_backends
from moto.iam.models import iam_backends
from moto.s3.models import s3_backends

from local.aws.corrections.compute.reservations import reservation_backends
from local.aws.corrections.eks.eks import eks_backends
from local.aws.corrections.eks.scaling_groups import scaling_backends
from local.aws.corrections.file_systems import file_backends
from local.aws.corrections.lifecycle_policies import dlm_backends
from stockyard.providers.clouds.aws.policies import template_parts, template_versions

_IN_CLUSTER = {
    "node_group": "groups",
    "addon": "addons",
    "access_entry": "entries",
    "pod_identity": "associations",
}
"""Kind of the ledger -> where the imitation of EKS keeps such things of a cluster."""


def tenant_role(account: str, name: str) -> Any:
    """The role that a tenant's template makes, in moto."""
    tags = [
        {"Key": template_versions.TAG, "Value": str(template_versions.CURRENT)},
        {"Key": template_parts.TAG, "Value": " ".join([template_parts.COMMON, *template_parts.BY_FEATURE])},
    ]
    return iam_backends[account]["aws"].create_role(name, "{}", "/", None, "", tags, "3600")


def things(account: str, region: str) -> set[tuple[str, str]]:
    """(kind, id) of all resources of an account, without those that every new account has."""
    ec2 = ec2_backends[account][region]
    own = {vpc.id for vpc in ec2.vpcs.values() if vpc.is_default not in ("true", True)}
    instances = [i for r in ec2.reservations.values() for i in r.instances if i.state != "terminated"]
    subnets = [s for zone in ec2.subnets.values() for s in zone.values() if s.vpc_id in own]
    groups = [g for v, by_id in ec2.groups.items() if v in own for g in by_id.values() if g.name != "default"]
    tables = [t for t in ec2.route_tables.values() if t.vpc_id in own and not t.main_association_id]
    gateways = [n for n in ec2.nat_gateways.values() if n.state not in ("deleted", "deleting")]
    balancing, iam = elbv2_backends[account][region], iam_backends[account]["aws"]
    ids_by_kind: dict[str, Any] = {
        "vpc": own,
        "instance": [i.id for i in instances],
        "subnet": [s.id for s in subnets],
        "security_group": [g.id for g in groups],
        "route_table": [t.id for t in tables],
        "internet_gateway": ec2.internet_gateways,
        "vpc_endpoint": [e.id for e in ec2.vpc_end_points.values() if e.state != "deleted"],
        "nat_gateway": [n.id for n in gateways],
        "address": [a.allocation_id for a in ec2.addresses],
        "volume": ec2.volumes,
        "snapshot": [s.id for s in ec2.snapshots.values() if s.owner_id == account and s.description == "by a policy"],
        "snapshot_policy": dlm_backends[account][region].policies,
        "load_balancer": balancing.load_balancers,
        "target_group": balancing.target_groups,
        "role": [name for name, role in iam.roles.items() if role.path != "/"],  # without the tenant's own
        "instance_profile": iam.instance_profiles,
        **_eks_things(account, region),
        "bucket": s3_backends[account]["aws"].buckets,
        "file_system": file_backends[account][region].systems,
        "mount_target": file_backends[account][region].targets,
        "launch_template": ec2.launch_templates,
        "auto_scaling_group": scaling_backends[account][region].groups,
    }
    return {(kind, name) for kind, names in ids_by_kind.items() for name in names}


def _eks_things(account: str, region: str) -> dict[str, list[str]]:
    """Things in the imitation of EKS, as the driver's ids name them."""
    things: dict[str, list[str]] = {name: [] for name in ("eks_cluster", *_IN_CLUSTER)}
    for name, cluster in eks_backends[account][region].clusters.items():
        things["eks_cluster"].append(name)
        for kind, attribute in _IN_CLUSTER.items():
            things[kind] += [f"{name}/{key}" for key, thing in getattr(cluster, attribute).items() if _is_ours(thing)]
    return things


def _is_ours(thing: Any) -> bool:
    """EKS itself gives an entry to whoever makes a cluster, and to the role of its nodes."""
    return bool(thing.document.get("tags"))


def _eks_tags(account: str, region: str) -> dict[str, dict[str, str]]:
    by_id: dict[str, dict[str, str]] = {}
    for name, cluster in eks_backends[account][region].clusters.items():
        by_id[name] = cluster.document["tags"]
        for attribute in _IN_CLUSTER.values():
            by_id |= {
                f"{name}/{key}": thing.document.get("tags", {}) for key, thing in getattr(cluster, attribute).items()
            }
    return by_id


def empty_managed(account: str, region: str) -> None:
    """Forget what EKS, EFS, auto scaling and reservations have in an account."""
    for backends in (eks_backends, file_backends, scaling_backends, reservation_backends):
        backends[account][region].reset()


def put_object(account: str, bucket: str, key: str, marks: dict[str, str]) -> None:
    """Put an object into a bucket, with these metadata."""
    stored = s3_backends[account]["aws"].put_object(bucket, key, b"content")
    stored.set_metadata({f"x-amz-meta-{name}": value for name, value in marks.items()})


def tags(account: str, region: str) -> dict[str, dict[str, str]]:
    """The tags of all that :func:`things` names and of network interfaces, by id. Without what has none."""
    iam, policies = iam_backends[account]["aws"], dlm_backends[account][region].policies
    balancing, ec2 = elbv2_backends[account][region], ec2_backends[account][region]
    store = s3_backends[account]["aws"]
    ids = {thing for _, thing in things(account, region)} | set(ec2.enis)
    arns = [thing for thing in ids if ":elasticloadbalancing:" in thing]
    by_id: dict[str, Any] = {
        **ec2.tags,
        **{arn: balancing.tagging_service.get_tag_dict_for_resource(arn) for arn in arns},
        **{name: _mapping(identity.tags) for name, identity in [*iam.roles.items(), *iam.instance_profiles.items()]},
        **_eks_tags(account, region),
        **{name: _mapping(system.document["Tags"]) for name, system in file_backends[account][region].systems.items()},
        **{policy_id: policy["Tags"] for policy_id, policy in policies.items()},
        **{name: _mapping(store.get_bucket_tagging(name)["Tags"]) for name in store.buckets},
    }
    return {thing: dict(by_id[thing]) for thing in ids if by_id.get(thing)}


def _mapping(pairs: list[dict[str, str]]) -> dict[str, str]:
    return {pair["Key"]: pair["Value"] for pair in pairs}
