"""The state of an account that permission checks depend on: tags of things, roles, launch templates, default keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from moto.ec2.models import ec2_backends
from moto.elbv2.models import elbv2_backends
from moto.iam.models import iam_backends

from local.aws.corrections.compute.shared_networks import owner_of
from local.aws.corrections.eks.eks import eks_backends
from local.aws.corrections.eks.scaling_groups import scaling_backends
from local.aws.corrections.file_systems import file_backends
from local.aws.corrections.lifecycle_policies import dlm_backends
from local.aws.permissions.calls import Tags, tags_of
from local.aws.permissions.policies import Statement


@dataclass
class Settings:
    """Settings of an account by its owner: ``volume_key`` is the id of the account's own default key of volumes, or the
    ARN of one of another account; empty where it is the one of AWS."""

    volume_key: str = ""
    guardrails: tuple[Statement, ...] = ()
    """Statements of the policies of its organization: what they deny no other policy allows."""


@dataclass(frozen=True)
class Account:
    """One look at an account in one region."""

    number: str
    region: str
    settings: Settings = field(default_factory=Settings)

    # --- IAM ----------------------------------------------------------------------------------------------------------

    @property
    def _iam(self) -> Any:
        return iam_backends[self.number]["aws"]

    def role(self, name: str) -> Any:
        """The role of that name, or None."""
        return next((role for role in list(self._iam.roles.values()) if role.name == name), None)

    def role_of_profile(self, profile: Mapping[str, Any]) -> str:
        """The ARN of the role in an instance profile, which is named or given by its ARN; empty: there is none."""
        name = str(profile.get("Name") or str(profile.get("Arn", "")).rpartition("/")[2])
        profiles = list(self._iam.instance_profiles.values())
        roles: list[Any] = next((each.roles for each in profiles if each.name == name), [])
        return str(roles[0].arn) if roles else ""

    def identity(self, kind: str, name: str) -> tuple[str, Tags, str]:
        """ARN, tags and permissions boundary of a role or an instance profile. IAM knows the path of what is there
        alone: the ARN of what is absent has none."""
        things = self._iam.roles if kind == "role" else self._iam.instance_profiles
        identity = next((thing for thing in list(things.values()) if thing.name == name), None)
        if identity is None:
            return f"arn:aws:iam::{self.number}:{kind}/{name}", {}, ""
        tags = identity.tags
        pairs = tags.values() if isinstance(tags, Mapping) else tags or ()
        boundary = getattr(identity, "permissions_boundary_arn", None) or ""
        return str(identity.arn), tags_of(pairs), str(boundary)

    # --- EC2 ----------------------------------------------------------------------------------------------------------

    @property
    def _ec2(self) -> Any:
        return ec2_backends[self.number][self.region]

    def tags(self, id: str) -> Tags:
        """The tags of a thing of EC2; a placement group is known by its name."""
        group = getattr(self._ec2, "placement_groups", {}).get(id)
        return dict(self._ec2.tags.get(group["GroupId"] if group else id) or {})

    def owner_of(self, id: str) -> str:
        """The account that owns a thing of EC2: its ARN names it."""
        return owner_of(self.number, self.region, id)

    def associated(self, association: str) -> tuple[str, ...]:
        """The route table and the subnet that an association is of."""
        for table in list(self._ec2.route_tables.values()):
            if association in table._associations:
                return str(table.id), str(table._associations[association])
        return ()

    def launch_template(self, specification: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """Id and data of a launch template that a call names; no data where it is not there."""
        name = specification.get("LaunchTemplateName") or specification.get("name")
        template_id = specification.get("LaunchTemplateId") or specification.get("id")
        version = str(specification.get("Version") or specification.get("version") or "$Default")
        for template in list(self._ec2.launch_templates.values()):
            if template.id == template_id or template.name == name:
                return str(template.id), dict(template.get_version(version).data)
        return str(template_id or "none"), {}

    def vpc_of(self, subnet: str) -> str:
        """The VPC of a subnet; empty where there is no such subnet."""
        return next((str(zone[subnet].vpc_id) for zone in list(self._ec2.subnets.values()) if subnet in zone), "")

    # --- other services -----------------------------------------------------------------------------------------------

    def balancing_tags(self, arn: str) -> Tags:
        """The tags of a load balancer, listener or target group."""
        return dict(elbv2_backends[self.number][self.region].tagging_service.get_tag_dict_for_resource(arn))

    def has_balancers(self) -> bool:
        """Whether there is a load balancer."""
        return bool(elbv2_backends[self.number][self.region].load_balancers)

    def lifecycle_policy(self, id: str) -> Tags:
        """The tags of a lifecycle policy."""
        return dict(dlm_backends[self.number][self.region].policies.get(id, {}).get("Tags", {}))

    def file_system(self, id: str) -> Tags:
        """The tags of a file system."""
        system = file_backends[self.number][self.region].systems.get(id)
        return tags_of(system.document["Tags"]) if system is not None else {}

    def mount_target(self, id: str) -> Mapping[str, Any]:
        """A mount target as EFS describes it; empty where it is absent."""
        target = file_backends[self.number][self.region].targets.get(id)
        return target.document if target is not None else {}

    def scaling_group(self, name: str) -> Tags:
        """The tags of an auto scaling group."""
        group = scaling_backends[self.number][self.region].groups.get(name)
        return dict(group.tags) if group is not None else {}

    def scaling_group_of(self, instance: str) -> str:
        """The auto scaling group of an instance; empty where it is in none."""
        groups = scaling_backends[self.number][self.region].groups
        return next((name for name, group in list(groups.items()) if instance in group.members), "")

    def eks_cluster(self, name: str) -> Any:
        """A cluster on EKS, or None."""
        return eks_backends[self.number][self.region].clusters.get(name)

    def eks_thing(self, arn: str) -> Tags:
        """The tags of a thing of EKS by its ARN."""
        for cluster in list(eks_backends[self.number][self.region].clusters.values()):
            parts = (cluster.groups, cluster.addons, cluster.entries, cluster.associations)
            for thing in (cluster, *(thing for things in parts for thing in list(things.values()))):
                if arn in _arns(thing.document):
                    return dict(thing.document.get("tags") or {})
        return {}


_ARNS = ("arn", "nodegroupArn", "addonArn", "accessEntryArn", "associationArn")


def _arns(document: Mapping[str, Any]) -> set[str]:
    return {str(document[field_name]) for field_name in _ARNS if field_name in document}
