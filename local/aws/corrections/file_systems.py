"""EFS: file systems and mount targets whose states pass, and whose interfaces stand in EC2.

moto has them at once, and deletes a mount target's interface while nobody looks.
"""

from __future__ import annotations

import copy
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from moto.core.base_backend import BackendDict, BaseBackend
from moto.ec2.models import ec2_backends
from moto.iam.models import get_account_id_from
from moto.moto_api._internal import mock_random

from local.aws.corrections import pace
from local.aws.corrections.compute.interfaces import dependencies_hold, managed_interface
from local.aws.corrections.eks.things import Document
from local.aws.corrections.rest_services import ServiceRefusal, served

PAGE = 100
_lock = threading.RLock()


def _refusal(code: str, status: int, message: str, **fields: Any) -> ServiceRefusal:
    return ServiceRefusal(code, status, message, ErrorCode=code, **fields)


@dataclass
class File:
    """A file system or a mount target. At ``at`` what it becomes is done."""

    document: Document
    at: float
    group_ids: list[str] = field(default_factory=list)

    @property
    def state(self) -> str:
        """As EFS tells it."""
        return str(self.document["LifeCycleState"])

    def begin(self, state: str, kind: str) -> None:
        """Keep a state until a change of that kind is done."""
        self.document["LifeCycleState"], self.at = state, pace.after(kind)

    def settle(self) -> bool:
        """Whether it is gone."""
        if pace.now() < self.at:
            return False
        if self.state == "creating":
            self.document["LifeCycleState"] = "available"
        return self.state == "deleting"


class FilesBackend(BaseBackend):  # type: ignore[misc]
    """EFS of one account and region. A method an operation, with the parameters of the API."""

    def __init__(self, region_name: str, account_id: str) -> None:
        super().__init__(region_name, account_id)
        self.systems: dict[str, File] = {}
        self.targets: dict[str, File] = {}
        self.policies: dict[str, list[Document]] = {}

    @property
    def _ec2(self) -> Any:
        return ec2_backends[self.account_id][self.region_name]

    def settle(self) -> None:
        """Do what has its time behind it."""
        for name in [name for name, target in self.targets.items() if target.settle()]:
            self._ec2.enis.pop(self.targets.pop(name).document["NetworkInterfaceId"], None)
        for name in [name for name, system in self.systems.items() if system.settle()]:
            del self.systems[name]
        for name, system in self.systems.items():
            system.document["NumberOfMountTargets"] = len(self._targets_of(name))

    def _targets_of(self, system: str) -> list[File]:
        return [target for target in self.targets.values() if target.document["FileSystemId"] == system]

    def create_file_system(self, parameters: Mapping[str, Any]) -> Document:
        token = parameters["CreationToken"]
        for name, system in self.systems.items():
            if system.document["CreationToken"] == token:
                text = f"File system '{name}' already exists with creation token '{token}'"
                raise _refusal("FileSystemAlreadyExists", 409, text, FileSystemId=name)
        name, tags = f"fs-{mock_random.get_random_hex(17)}", list(parameters.get("Tags", ()))
        document = {
            "OwnerId": self.account_id,
            "CreationToken": token,
            "FileSystemId": name,
            "FileSystemArn": f"arn:aws:elasticfilesystem:{self.region_name}:{self.account_id}:file-system/{name}",
            "CreationTime": pace.moment(),
            "LifeCycleState": "creating",
            "Name": next((tag["Value"] for tag in tags if tag["Key"] == "Name"), ""),
            "NumberOfMountTargets": 0,
            "SizeInBytes": {"Value": 6144},
            "PerformanceMode": parameters.get("PerformanceMode", "generalPurpose"),
            "Encrypted": parameters.get("Encrypted", False),
            "ThroughputMode": parameters.get("ThroughputMode", "bursting"),
            "Tags": tags,
            **({"KmsKeyId": parameters["KmsKeyId"]} if "KmsKeyId" in parameters else {}),
        }
        self.systems[name] = File(document, pace.after("file system"))
        return copy.deepcopy(document)

    def describe_file_systems(self, parameters: Mapping[str, Any]) -> Document:
        systems = list(self.systems.values())
        if parameters.get("FileSystemId"):
            systems = [self._system(parameters)]
        if parameters.get("CreationToken"):
            systems = [s for s in systems if s.document["CreationToken"] == parameters["CreationToken"]]
        return _paged("FileSystems", systems, parameters)

    def _system(self, parameters: Mapping[str, Any]) -> File:
        name = parameters["FileSystemId"]
        if name not in self.systems:
            raise _refusal("FileSystemNotFound", 404, f"File system '{name}' does not exist.")
        return self.systems[name]

    def update_file_system(self, parameters: Mapping[str, Any]) -> Document:
        system = self._system(parameters)
        system.document |= {name: parameters[name] for name in ("ThroughputMode",) if name in parameters}
        return copy.deepcopy(system.document)

    def delete_file_system(self, parameters: Mapping[str, Any]) -> Document:
        system = self._system(parameters)
        if self._targets_of(parameters["FileSystemId"]):
            raise _refusal("FileSystemInUse", 409, f"{parameters['FileSystemId']} has mount targets.")
        system.begin("deleting", "file system")
        return {}

    def put_lifecycle_configuration(self, parameters: Mapping[str, Any]) -> Document:
        self._system(parameters)
        self.policies[parameters["FileSystemId"]] = list(parameters["LifecyclePolicies"])
        return {"LifecyclePolicies": self.policies[parameters["FileSystemId"]]}

    def describe_lifecycle_configuration(self, parameters: Mapping[str, Any]) -> Document:
        self._system(parameters)
        return {"LifecyclePolicies": self.policies.get(parameters["FileSystemId"], [])}

    def create_mount_target(self, parameters: Mapping[str, Any]) -> Document:
        system, name = self._system(parameters), parameters["FileSystemId"]
        if system.state != "available":
            raise _refusal("IncorrectFileSystemLifeCycleState", 409, f"{name} is {system.state}.")
        subnet = self._subnet(parameters["SubnetId"])
        groups = list(parameters.get("SecurityGroups", ()))
        for group in groups:
            if self._ec2.get_security_group_from_id(group) is None:
                raise _refusal("SecurityGroupNotFound", 400, f"The security group '{group}' does not exist")
        for other in self._targets_of(name):
            if other.document["VpcId"] != subnet.vpc_id:
                raise _refusal("MountTargetConflict", 409, "the subnet is in another VPC than the other mount targets")
            if other.document["AvailabilityZoneName"] == subnet.availability_zone:
                raise _refusal("MountTargetConflict", 409, "mount target already exists in this AZ")
        target = f"fsmt-{mock_random.get_random_hex(17)}"
        interface = managed_interface(self._ec2, subnet, groups, f"EFS mount target for {name} ({target})")
        document = {
            "OwnerId": self.account_id,
            "MountTargetId": target,
            "FileSystemId": name,
            "SubnetId": str(subnet.id),
            "LifeCycleState": "creating",
            "IpAddress": str(self._ec2.enis[interface].private_ip_address),
            "NetworkInterfaceId": interface,
            "AvailabilityZoneName": str(subnet.availability_zone),
            "VpcId": str(subnet.vpc_id),
        }
        self.targets[target] = File(document, pace.after("mount target"), groups)
        return dict(document)

    def _subnet(self, subnet_id: str) -> Any:
        for by_id in self._ec2.subnets.values():
            if subnet_id in by_id:
                return by_id[subnet_id]
        raise _refusal("SubnetNotFound", 400, f"The subnet ID '{subnet_id}' does not exist")

    def describe_mount_targets(self, parameters: Mapping[str, Any]) -> Document:
        if parameters.get("MountTargetId"):
            return _paged("MountTargets", [self._target(parameters)], parameters)
        self._system(parameters)
        return _paged("MountTargets", self._targets_of(parameters["FileSystemId"]), parameters)

    def _target(self, parameters: Mapping[str, Any]) -> File:
        name = parameters["MountTargetId"]
        if name not in self.targets:
            raise _refusal("MountTargetNotFound", 404, f"Mount target '{name}' does not exist.")
        return self.targets[name]

    def delete_mount_target(self, parameters: Mapping[str, Any]) -> Document:
        self._target(parameters).begin("deleting", "mount target deletion")
        return {}

    def describe_mount_target_security_groups(self, parameters: Mapping[str, Any]) -> Document:
        return {"SecurityGroups": list(self._target(parameters).group_ids)}

    def modify_mount_target_security_groups(self, parameters: Mapping[str, Any]) -> Document:
        target = self._target(parameters)
        target.group_ids = list(parameters.get("SecurityGroups", ()))
        self._ec2.modify_network_interface_attribute(target.document["NetworkInterfaceId"], target.group_ids)
        return {}

    def tag_resource(self, parameters: Mapping[str, Any]) -> Document:
        document = self._tagged(parameters).document
        keys = {tag["Key"] for tag in parameters["Tags"]}
        stay = [tag for tag in document["Tags"] if tag["Key"] not in keys]
        document["Tags"] = [*stay, *parameters["Tags"]]
        return {}

    def untag_resource(self, parameters: Mapping[str, Any]) -> Document:
        document = self._tagged(parameters).document
        document["Tags"] = [tag for tag in document["Tags"] if tag["Key"] not in parameters["TagKeys"]]
        return {}

    def list_tags_for_resource(self, parameters: Mapping[str, Any]) -> Document:
        return {"Tags": list(self._tagged(parameters).document["Tags"])}

    def _tagged(self, parameters: Mapping[str, Any]) -> File:
        return self._system({"FileSystemId": parameters["ResourceId"].rpartition("/")[2]})


def _paged(member: str, files: Sequence[File], parameters: Mapping[str, Any]) -> Document:
    first = int(parameters.get("Marker") or 0)
    end = first + min(int(parameters.get("MaxItems") or PAGE), PAGE)
    rows = [copy.deepcopy(file.document) for file in files[first:end]]
    return {member: rows, **({"NextMarker": str(end)} if end < len(files) else {})}


file_backends = BackendDict(FilesBackend, "efs")


def answer(access_key: str, region: str, operation: str, parameters: Mapping[str, Any]) -> Document:
    """Answer of EFS to the owner of the key. Raises ``ServiceRefusal``."""
    backend = file_backends[get_account_id_from(access_key)][region]
    method = getattr(backend, re.sub(r"(?<!^)(?=[A-Z])", "_", operation).lower(), None)
    if method is None:
        raise _refusal("BadRequest", 400, f"the imitation of EFS does not know {operation}")
    with _lock:
        backend.settle()
        return dict(method(parameters))


@contextmanager
def file_systems() -> Iterator[None]:
    """Inside this context moto's server answers requests that are signed for EFS."""
    with ExitStack() as stack:
        stack.enter_context(served("efs", answer))
        stack.enter_context(dependencies_hold())
        yield
