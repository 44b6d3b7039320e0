"""Launch templates of the machines of an EKS node group, and refusals of EKS about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from moto.core.exceptions import ServiceException
from moto.ec2.models import ec2_backends
from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS, INSTANCE_TYPES
from moto.ec2.utils import convert_tag_spec

from local.aws.corrections.compute.reservations import BLOCK
from local.aws.corrections.eks.things import Document, bad_parameter, bad_request
from local.aws.corrections.refusals import Unsupported
from local.aws.corrections.scarcity import InsufficientInstanceCapacity, shortage_now

SPOT, RESERVED = "SPOT", "CAPACITY_BLOCK"
DEFAULT_TYPES = ("t3.medium",)
DEFAULT_DISK = 20


@dataclass
class NodeTemplate:
    """``data`` is that of the group's launch template, empty without one; ``specification`` names it for EC2."""

    account: str
    region: str
    kinds: tuple[str, ...]
    image: str
    capacity_type: str
    disk_gib: int
    group_ids: tuple[str, ...]
    tags: Mapping[str, str]
    specification: Mapping[str, str] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)

    def launch(self, subnet_id: str) -> Any:
        """A new instance in a subnet: of the first type that EC2 has there. Raises ``ServiceException``."""
        refusal: ServiceException = InsufficientInstanceCapacity()
        for kind in self.kinds:
            try:
                return self._launch(subnet_id, kind)
            except ServiceException as error:
                refusal = error
        raise refusal

    def _launch(self, subnet_id: str, kind: str) -> Any:
        ec2 = ec2_backends[self.account][self.region]
        zone = str(ec2.get_subnet(subnet_id).availability_zone)
        self._check_capacity(ec2, kind, zone)
        tags = convert_tag_spec(self.data.get("TagSpecifications", []))
        tags["instance"] = {**tags.get("instance", {}), **self.tags}
        tags["volume"] = {**tags.get("volume", {}), **self.tags}
        disk = {"VolumeSize": self.disk_gib, "VolumeType": "gp3", "DeleteOnTermination": True}
        reservation = ec2.run_instances(
            self.image,
            1,
            None,
            [],
            instance_type=kind,
            is_instance_type_default=False,
            region_name=self.region,
            subnet_id=subnet_id,
            security_group_ids=list(self.group_ids),
            tags=tags,
            launch_template=dict(self.specification),
            block_device_mappings=self.data.get("BlockDeviceMappings") or [{"DeviceName": "/dev/xvda", "Ebs": disk}],
            metadata_options=self.data.get("MetadataOptions", {}),
            instance_market_options="spot" if self.capacity_type == SPOT else {},
            client_token="",
        )
        instance = reservation.instances[0]
        for interface in instance.nics.values():
            interface.delete_on_termination = True  # as AWS sets it
        return instance

    def _check_capacity(self, ec2: Any, kind: str, zone: str) -> None:
        offerings = INSTANCE_TYPE_OFFERINGS["availability-zone"].get(self.region, [])
        if not any((offer["InstanceType"], offer["Location"]) == (kind, zone) for offer in offerings):
            raise Unsupported(kind, zone)
        # A reservation has its capacity, however scarce the type is.
        reason = "" if self.capacity_type == RESERVED else shortage_now(ec2, kind, zone)
        if reason == "Unsupported":
            raise Unsupported(kind, zone)
        if reason:
            raise InsufficientInstanceCapacity(
                f"We currently do not have sufficient {kind} capacity in the Availability Zone you requested ({zone})."
            )


def image_id(ami_type: str, release: str, region: str) -> str:
    """The id of the image of a release."""
    return f"ami-0{sha256(f'{ami_type} {release} {region}'.encode()).hexdigest()[:16]}"


def launch_template(account: str, region: str, reference: Mapping[str, str]) -> tuple[Document, Document]:
    """A launch template's reference with id, name and version, and its data. Raises ``ServiceRefusal``."""
    templates = ec2_backends[account][region].launch_templates.values()
    name = reference.get("id") or reference.get("name")
    template = next((template for template in templates if name in {template.id, template.name}), None)
    if template is None:
        raise bad_parameter(f"Launch template {name} does not exist")
    version = str(reference.get("version") or template.default_version_number)
    numbers = {"$Default": template.default_version_number, "$Latest": template.latest_version_number}
    number = int(numbers.get(version, version))
    if not 0 < number <= template.latest_version_number:
        raise bad_parameter(f"Launch template {name} has no version {version}")
    data = template.get_version(number).data
    return {"id": template.id, "name": template.name, "version": str(number)}, dict(data)


def check_types(parameters: Mapping[str, Any], data: Mapping[str, Any], region: str) -> tuple[str, ...]:
    """The instance types of a new group. Raises ``ServiceRefusal``."""
    of_template, named = data.get("InstanceType"), parameters.get("instanceTypes") or ()
    if of_template and named:
        raise bad_parameter("Instance types must be specified in the launch template or in the request, not in both")
    kinds = tuple(named) or ((of_template,) if of_template else DEFAULT_TYPES)
    offered_types = {offer["InstanceType"] for offer in INSTANCE_TYPE_OFFERINGS["region"].get(region, [])}
    absent = [kind for kind in kinds if kind not in offered_types]
    if absent:
        raise bad_parameter(f"The following supplied instance types do not exist: {absent}")
    wants_arm = "ARM" in parameters.get("amiType", "")
    for kind in kinds:
        architectures = INSTANCE_TYPES.get(kind, {}).get("ProcessorInfo", {}).get("SupportedArchitectures", [])
        if parameters.get("amiType", "CUSTOM") != "CUSTOM" and ("arm64" in architectures) != wants_arm:
            text = f"[{kind}] is not a valid instance type for requested amiType {parameters['amiType']}"
            raise bad_parameter(text)
    return kinds


def check_zones(kinds: tuple[str, ...], zones: Iterable[str], region: str) -> None:
    """Raises ``ServiceRefusal`` for a subnet in a zone that has none of the types."""
    rows = INSTANCE_TYPE_OFFERINGS["availability-zone"].get(region, [])
    offers = {(row["InstanceType"], row["Location"]) for row in rows}
    for zone in zones:
        if not any((kind, zone) in offers for kind in kinds):
            text = f"Your requested instance type ({kinds[0]}) is not supported in your requested Availability Zone"
            raise bad_request(f"{text} ({zone}).")


def check_template(parameters: Mapping[str, Any], data: Mapping[str, Any]) -> None:
    """Raises ``ServiceRefusal`` where the request and its launch template do not go together."""
    if "launchTemplate" in parameters and parameters.get("diskSize"):
        raise bad_parameter("Disk size must be specified within the launch template.")
    if data.get("IamInstanceProfile") or data.get("SubnetId"):
        raise bad_parameter("Launch template should not specify an instance profile or a subnet")
    is_custom = parameters.get("amiType") == "CUSTOM"
    if "ImageId" in data and parameters.get("amiType") and not is_custom:
        raise bad_parameter("You cannot specify an AMI type when the launch template specifies an image id")
    market = (data.get("InstanceMarketOptions") or {}).get("MarketType")
    target = (data.get("CapacityReservationSpecification") or {}).get("CapacityReservationTarget")
    if parameters.get("capacityType") == RESERVED:
        if market != BLOCK or not target or not data.get("InstanceType"):
            raise bad_parameter(
                "A node group of capacity type CAPACITY_BLOCK needs a launch template with its instance type, the "
                "market type capacity-block and the capacity reservation"
            )
    elif market:
        raise bad_parameter("Launch template should not specify market options unless the group is of CAPACITY_BLOCK")
