"""The settings of a cluster on Cudo Compute. Field by field the table of the reference, as decided."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ModelWrapValidatorHandler, StringConstraints, model_validator

from stockyard.domain.models import fields, patterns
from stockyard.domain.models.base import Fault, Input, check, repeated
from stockyard.domain.models.clusters.clusters import ClusterSettings, beside
from stockyard.domain.models.clusters.overlay import OverlayNetwork, overlap_fault
from stockyard.domain.models.patterns import worded
from stockyard.providers.clouds.cudo.attributes import CudoId
from stockyard.providers.clusters.cudo.configuration import DEFAULT_SIZE, NETWORK_CIDR, PROFILE, SIZES, Profile

MAX_GROUPS = 200
MAX_NODES = 10_000
"""What a document may say at all; a tenant's quotas ``node_groups`` and ``nodes_per_group`` allow less."""
EVERYWHERE = "0.0.0.0/0"
_SSH_KEY = worded(
    r"^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)|sk-ssh-ed25519@openssh\.com)"
    r" [A-Za-z0-9+/=.]{1,8000}( [ -~]{0,200})?$",
    "one public key of SSH in a line, as in an authorized_keys file",
)
_ON_AWS = "is a field of node groups on AWS"
_OF_AWS = {
    "name": "a node group on Cudo is named by its id",
    **dict.fromkeys(("instance_types", "taints", "allocation_strategy", "capacity_type"), _ON_AWS),
}
_ABSENT = {"integrations": "clusters on Cudo have no integrations: the table of their settings has no such field"}

Size = Literal["sm", "md", "lg"]
ProfileName = Literal["vantage-k8s-control-sm", "vantage-k8s-control-md", "vantage-k8s-control-lg"]
GpuModel = Annotated[str, StringConstraints(min_length=1, max_length=100), AfterValidator(fields.no_nul)]


class CudoNodeGroup(Input):
    """A group of equal machines. The ``control`` group is the control plane's machine."""

    id: Annotated[str, StringConstraints(max_length=63, pattern=patterns.LABEL)]
    """The name of the group, once in the cluster."""
    role: Literal["control", "worker"]
    """What its machines are: the control plane, or workers."""
    min_size: Annotated[int, Field(ge=0, le=MAX_NODES)]
    """How many machines it has at least."""
    max_size: Annotated[int, Field(ge=0, le=MAX_NODES)]
    """How many machines it has at most."""
    vcpus: Annotated[int, Field(ge=1, le=1024)]
    """Virtual CPUs of a machine."""
    memory_gib: Annotated[int, Field(ge=1, le=16_384)]
    """Memory of a machine in GiB."""
    boot_disk_size_gib: Annotated[int, Field(ge=10, le=16_384)]
    """The boot disk of a machine in GiB."""
    data_center_id: CudoId
    """The data center where its machines stand."""
    machine_type: CudoId
    """The machine type that Cudo offers there."""
    gpus: Annotated[int, Field(ge=0, le=64)] = 0
    """GPUs of a machine."""
    gpu_model: GpuModel | None = None
    """The model of the GPUs."""
    labels: fields.Labels = Field(default_factory=dict)
    """Labels of the nodes."""

    @model_validator(mode="wrap")
    @classmethod
    def _no_fields_of_aws(cls, document: Any, handler: ModelWrapValidatorHandler[CudoNodeGroup]) -> CudoNodeGroup:
        return beside(cls, _OF_AWS, document, handler)

    @model_validator(mode="after")
    def _whole(self) -> CudoNodeGroup:
        faults: list[Fault] = []
        if self.min_size > self.max_size:
            faults.append((("min_size",), "must not be greater than max_size"))
        if self.role == "control" and (self.min_size, self.max_size) != (1, 1):
            faults.append((("max_size",), "a control plane on Cudo is one machine: min_size and max_size must be 1"))
        if self.gpu_model is not None and not self.gpus:
            faults.append((("gpus",), "must be 1 or more beside gpu_model"))
        check(faults)
        return self


def _groups(groups: list[CudoNodeGroup]) -> list[CudoNodeGroup]:
    """Ids must be unique, and only one group may be the control group."""
    control = [index for index, group in enumerate(groups) if group.role == "control"]
    controls: list[Fault] = [((index, "role"), "only one group may have the role control") for index in control[1:]]
    check([*repeated([group.id for group in groups], "another group has this id", "id"), *controls])
    return groups


CudoNodeGroups = Annotated[list[CudoNodeGroup], Field(max_length=MAX_GROUPS), AfterValidator(_groups)]


class CudoSettings(ClusterSettings):
    """Settings of a cluster on Cudo. A control group beside a named size has to have that size."""

    autoscaler_node_groups: CudoNodeGroups = Field(default_factory=list)
    """The groups of machines; that of the role ``control`` is the control plane's."""
    control_plane_size: Size | None = None
    """The size of the control plane: 4 vCPUs, 8 GiB of memory and 50 GiB of disk for ``sm``, 8, 16 and 100 for ``md``,
    16, 32 and 200 for ``lg``."""
    instance_type: ProfileName | None = None
    """The same size by the name of its profile."""
    ssh_public_key: Annotated[str, StringConstraints(max_length=8192, pattern=_SSH_KEY)] | None = None
    """A public key that may log in to the machines."""
    dev_mode: bool = False
    """Whether machines start from images of the development channel."""
    no_vault: bool = False
    """True: the data disk of the control plane is not encrypted."""
    api_cidrs: fields.Cidrs = Field(default_factory=lambda: [EVERYWHERE], min_length=1)
    """The ranges of addresses that may reach the API endpoint."""
    ssh_cidrs: fields.Cidrs = Field(default_factory=list)
    """The ranges of addresses that may reach port 22."""
    overlay: OverlayNetwork | None = None
    """An overlay, by which nodes of other networks can be in the cluster; null for none."""

    @model_validator(mode="wrap")
    @classmethod
    def _no_integrations(cls, document: Any, handler: ModelWrapValidatorHandler[CudoSettings]) -> CudoSettings:
        return beside(cls, _ABSENT, document, handler)

    @model_validator(mode="after")
    def _agree(self) -> CudoSettings:
        size, profile = self.control_plane_size, self.instance_type
        faults: list[Fault] = []
        if size and profile and profile != f"{PROFILE}{size}":
            faults.append((("instance_type",), f"is another profile than control_plane_size: that is {PROFILE}{size}"))
        elif named := self._named_size():
            faults += self._control_faults(named)
        if self.overlay is not None and (fault := overlap_fault(self.overlay.range, NETWORK_CIDR)):
            faults.append((("overlay", "range"), fault))
        if self.ssh_cidrs and self.ssh_public_key is None:
            faults.append((("ssh_cidrs",), "nobody can log in without ssh_public_key"))
        check(faults)
        return self

    def _named_size(self) -> str | None:
        return self.control_plane_size or (self.instance_type or "").removeprefix(PROFILE) or None

    def _control_faults(self, size: str) -> list[Fault]:
        """Faults where the control group is another machine than the profile that is named beside it."""
        profile = SIZES[size]
        return [
            (("autoscaler_node_groups", index, field), f"must be {figure}, as in {PROFILE}{size}, or name no profile")
            for index, group in enumerate(self.autoscaler_node_groups)
            if group.role == "control"
            for field, figure in _figures(profile)
            if getattr(group, field) != figure
        ]

    @classmethod
    def written(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        """See ``ClusterSettings.written``. The size says the type of the machine."""
        groups = [{**group, "gpu_model": group["gpu_model"] or None} for group in settings["autoscaler_node_groups"]]
        written = {**settings, "autoscaler_node_groups": groups}
        return {name: value for name, value in written.items() if name != "instance_type"}

    def normal(self) -> dict[str, Any]:
        """The settings as the record keeps them: every field there, defaults filled in."""
        document = super().normal()
        size = self._named_size() or DEFAULT_SIZE
        document["control_plane_size"], document["instance_type"] = size, f"{PROFILE}{size}"
        for group in document["autoscaler_node_groups"]:
            group["gpu_model"] = group["gpu_model"] or ""
        return document


def _figures(profile: Profile) -> tuple[tuple[str, int], ...]:
    return ("vcpus", profile.vcpus), ("memory_gib", profile.memory_gib), ("boot_disk_size_gib", profile.disk_gib)
