"""The real driver of volumes of a served cluster: what it says on each machine, and a volume's life for each."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from local.kubernetes.real import build
from local.kubernetes.real.control_plane import program
from stockyard.machines import manifests
from stockyard.providers.clouds.aws import tags

if TYPE_CHECKING:
    from local.testing.serving import Served

OF_NODE, OF_CONTROLLER = "csi/csi.sock", "var/lib/csi/sockets/pluginproxy/csi.sock"
"""Where the driver listens in its pods."""
ZONE = "topology.kubernetes.io/zone"
_WAY = {"mount": {"fsType": "ext4"}, "accessMode": {"mode": "SINGLE_NODE_WRITER"}}
_PARAMETERS = manifests.STORAGE_CLASS["parameters"]


@dataclass(frozen=True)
class Driver:
    """The driver of one cluster, whose control plane is in a folder called like ``plane``. ``ec2`` looks on."""

    cloud: Served
    plane: str
    ec2: Any

    def serves(self, machines: Mapping[str, str], marks: Mapping[str, str]) -> None:
        """The node plugin on each of the ``machines``, instance -> zone, says where it is and how many volumes it has;
        the controller makes, attaches, detaches and deletes a volume for each. A volume has the ``marks`` as tags."""
        self.cloud.wait(f"the driver on {sorted(machines)}", lambda: self.zones(machines) == dict(machines), 90)
        for machine, zone in machines.items():
            volume = self.new_volume(zone)
            (disk,) = self.ec2.describe_volumes(VolumeIds=[volume])["Volumes"]
            assert (disk["Encrypted"], disk["VolumeType"], disk["AvailabilityZone"]) == (True, "gp3", zone)
            assert marks.items() <= tags.mapping(disk["Tags"]).items()
            self.controller("ControllerPublishVolume", volumeId=volume, nodeId=machine, volumeCapability=_WAY)
            (disk,) = self.ec2.describe_volumes(VolumeIds=[volume])["Volumes"]
            assert [(item["InstanceId"], item["State"]) for item in disk["Attachments"]] == [(machine, "attached")]
            self.controller("ControllerUnpublishVolume", volumeId=volume, nodeId=machine)
            self.controller("DeleteVolume", volumeId=volume)
            assert volume not in [item["VolumeId"] for item in self.ec2.describe_volumes()["Volumes"]]

    def new_volume(self, zone: str) -> str:
        """A new volume, as a claim of the cluster's default class asks for it; its id."""
        segments = [{"segments": {ZONE: zone}}]
        wish = {"name": f"pvc-{time.monotonic_ns()}", "capacityRange": {"requiredBytes": 2**30}}
        accessibility = {"requisite": segments, "preferred": segments}
        answer = self.controller(
            "CreateVolume", **wish, parameters=_PARAMETERS, accessibilityRequirements=accessibility,
            volumeCapabilities=[_WAY],
        )  # fmt: skip
        return str(answer["volume"]["volumeId"])

    def zones(self, machines: Collection[str]) -> dict[str, str]:
        """Instance -> zone, as the driver on each of the machines tells them."""
        zones = {}
        for root in self._pods(OF_NODE):
            # A machine on its way out has a driver that may answer no more.
            with suppress(AssertionError, OSError):
                answer = _answer(root, OF_NODE, "Node/NodeGetInfo", {})
                if answer["nodeId"] in machines:
                    assert int(answer["maxVolumesPerNode"]) > 0
                    zones[answer["nodeId"]] = answer["accessibleTopology"]["segments"][ZONE]
        return zones

    def controller(self, method: str, **request: Any) -> Any:
        """The answer of the driver's controller that runs. Raises ``AssertionError`` with its refusal."""

        def answering() -> Path | None:
            for root in self._pods(OF_CONTROLLER):
                with suppress(AssertionError, OSError):
                    _answer(root, OF_CONTROLLER, "Identity/Probe", {})
                    return root
            return None

        return _answer(
            self.cloud.wait("the driver's controller", answering, 60), OF_CONTROLLER, f"Controller/{method}", request
        )

    def _pods(self, socket: str) -> list[Path]:
        """The files of each pod that listens at the socket."""
        sockets = (self.cloud.home / "planes").glob(f"{self.plane}/pod-*/{socket}")
        return [Path(str(path).removesuffix(f"/{socket}")) for path in sockets]


def _answer(root: Path, socket: str, call: str, request: Mapping[str, Any]) -> Any:
    """The answer of the driver in the pod whose files are below ``root``."""
    command = [str(program(build.CALLER)), f"unix:/proc/self/cwd/{socket}", *call.split("/")]
    done = subprocess.run(command, cwd=root, input=json.dumps(request), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
