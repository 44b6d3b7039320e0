"""A real control plane on EC2 whose members are replaced, grow and are restored, the first one too: its API answers
with its objects still there, and the real cloud controller, which each member runs, still initializes new nodes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from local.aws.accounts import ACME_ACCOUNT, REGION
from local.kubernetes.real import build
from local.kubernetes.real.client import Client
from local.kubernetes.real.cloud import WITH_DRIVER
from local.kubernetes.real.control_plane import program
from local.kubernetes.real.kubelet import UNINITIALIZED
from stockyard.machines import manifests
from stockyard.providers.clouds.aws import tags
from tests.harness.stories.pools import administrator, story_body
from tests.kubernetes.test_served import files_of, good, programs_of, succeeded

if TYPE_CHECKING:
    from local.testing.serving import Served

pytestmark = pytest.mark.timeout(900)
MAPS = "/api/v1/namespaces/default/configmaps"
CONTROLLERS = "/api/v1/namespaces/kube-system/pods?labelSelector=k8s-app%3Daws-cloud-controller-manager"
OF_NODE, OF_CONTROLLER = "csi/csi.sock", "var/lib/csi/sockets/pluginproxy/csi.sock"
"""Where the driver of volumes listens in its pods."""
ZONE = "topology.kubernetes.io/zone"
OLD, NEW = "1.34", "1.35"


@dataclass
class Plane:
    """A cluster of the served cloud and its administrator."""

    cloud: Served
    cluster: dict[str, Any]
    kube: Client

    def machines(self) -> set[str]:
        """The instances that are there for the cluster."""
        return {path.name for path in (self.cloud.home / "machines").iterdir()}

    def members(self) -> list[dict[str, Any]]:
        """The instances of the control plane that run."""
        marks = [
            {"Name": "tag:vantage-cluster", "Values": [self.cluster["client_id"]]},
            {"Name": "instance-state-name", "Values": ["running"]},
        ]
        listed = self.ec2.describe_instances(Filters=marks)["Reservations"]
        instances = [instance for reservation in listed for instance in reservation["Instances"]]
        return [instance for instance in instances if cluster_names(instance)]

    @cached_property
    def ec2(self) -> Any:
        return self.cloud.aws("ec2", ACME_ACCOUNT)

    @property
    def path(self) -> str:
        return f"clusters/{self.cluster['id']}"

    def change(self, document: dict[str, Any]) -> None:
        """Change the cluster, and wait until that is done."""
        answer = self.cloud.wait("that nobody else changes it", lambda: self._changed(document), 30)
        assert answer.status in (200, 202), answer.text
        succeeded(self.cloud, answer.body["operation_id"])

    def _changed(self, document: dict[str, Any]) -> Any:
        etag = self.cloud.call("GET", f"/v1/{self.path}").headers["etag"]
        answer = self.cloud.call("PATCH", f"/v1/{self.path}", document, headers={"If-Match": etag})
        return None if answer.status == 412 else answer

    def claim(self) -> str:
        """A new claim; its id."""
        return str(
            good(self.cloud, "POST", "node-claims", {"cluster": self.cluster["id"], "resources": {"cpu": 1}})["id"]
        )

    def node_comes(self) -> None:
        """A node becomes Available, which the cloud's controller has initialized; it is of no use any more then."""
        claim = self.claim()
        self.available(claim)
        good(self.cloud, "DELETE", f"node-claims/{claim}")

    def available(self, claim: str) -> None:
        """Wait until the claim is, and look what the controller has told of its node."""
        document = self.cloud.wait(f"the node of {claim}", lambda: self._available(claim), 120)
        node = self.node(claim)
        assert UNINITIALIZED not in node["spec"].get("taints", ())
        zone = node["metadata"]["labels"]["topology.kubernetes.io/zone"]
        assert node["spec"]["providerID"].startswith(f"aws:///{zone}/i-")
        # What no kubelet of ours says.
        assert node["metadata"]["labels"]["topology.kubernetes.io/region"] == REGION
        assert {"InternalIP", "InternalDNS"} <= {address["type"] for address in node["status"]["addresses"]}, document

    def node(self, claim: str) -> Any:
        """The claim's node; None while there is none."""
        items = self.kube.call("GET", "/api/v1/nodes")["items"]
        own = [item for item in items if item["metadata"]["labels"].get("stockyard.dev/claim") == claim]
        return own[0] if own else None

    def controllers(self) -> list[dict[str, Any]]:
        """The pods of the cloud's controller."""
        return list(self.kube.call("GET", CONTROLLERS)["items"])

    def ask_driver(self, root: Path, socket: str, call: str, request: dict[str, Any]) -> Any:
        """The answer of the driver of volumes whose pod's files are below ``root``. Raises ``AssertionError``."""
        command = [str(program(build.CALLER)), f"unix:/proc/self/cwd/{socket}", *call.split("/")]
        done = subprocess.run(command, cwd=root, input=json.dumps(request), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def places(self, machines: set[str]) -> dict[str, str]:
        """Instance -> zone, as the driver on each node tells them; empty until it tells those of the ``machines``."""
        zones = {}
        for root in self.pod_folders(OF_NODE):
            # A machine on its way out has a driver that may answer no more.
            with suppress(AssertionError, OSError):
                answer = self.ask_driver(root, OF_NODE, "Node/NodeGetInfo", {})
                assert int(answer["maxVolumesPerNode"]) > 0
                zones[answer["nodeId"]] = answer["accessibleTopology"]["segments"][ZONE]
        return zones if machines <= zones.keys() else {}

    def pod_folders(self, socket: str) -> list[Path]:
        """The files of each pod that listens at the socket."""
        sockets = (self.cloud.home / "planes").glob(f"*/pod-*/{socket}")
        return [Path(str(path).removesuffix(f"/{socket}")) for path in sockets]

    def log_of(self, node: str) -> str:
        """What the controllers on a node have printed."""
        (log,) = (self.cloud.home / "planes").glob(f"*/{build.CLOUD_CONTROLLER}-{node}.log")
        return log.read_text(errors="replace")

    def _available(self, claim: str) -> dict[str, Any] | None:
        document: dict[str, Any] = good(self.cloud, "GET", f"node-claims/{claim}")
        assert document["phase"] != "Failed", document
        return document if document["phase"] == "Available" else None


def cluster_names(instance: dict[str, Any]) -> list[dict[str, str]]:
    """The tags of an instance by which the cloud's controller knows its cluster."""
    own = (tags.CLUSTER_OF_MEMBER, tags.kubernetes(""))
    return [tag for tag in instance["Tags"] if tag["Key"].startswith(own)]


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    for reason in (build.missing(), build.missing_previous(), build.missing_cloud()):
        if reason:
            pytest.skip(reason)
    from local.testing.serving import serve

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(WITH_DRIVER, "1")
        served = serve(tmp_path_factory.mktemp("members") / "home", "--kubernetes", "--no-limits")
    yield served
    assert served.stop() == 0
    assert not (served.home / "planes").exists()


@pytest.fixture(scope="module")
def plane(cloud: Served, tmp_path_factory: pytest.TempPathFactory) -> Plane:
    body = story_body(kubernetes_version=OLD)
    # Nodes come for claims: those of a group would be rolled by a schedule, which keeps real time.
    body["settings"]["autoscaler_node_groups"][1] |= {"min_size": 0, "max_size": 0}
    cluster = good(cloud, "POST", "clusters", body)
    succeeded(cloud, cluster["operation_id"])
    kube = administrator(cloud, cluster, tmp_path_factory.mktemp("administrator"))
    kube.call("POST", MAPS, {"metadata": {"name": "kept"}, "data": {"from": "the first machine"}})
    return Plane(cloud, cluster, kube)


def is_kept(plane: Plane) -> bool:
    return bool(plane.kube.call("GET", f"{MAPS}/kept")["data"] == {"from": "the first machine"})


def test_an_upgrade_leaves_a_controller_that_initializes_nodes(plane: Plane) -> None:
    assert plane.kube.call("GET", "/version")["minor"] == OLD.split(".")[1]
    before = plane.machines()
    plane.change({"kubernetes_version": NEW})
    plane.cloud.wait("the end of every machine of before", lambda: not before & plane.machines(), 60)
    assert plane.kube.call("GET", "/version")["minor"] == NEW.split(".")[1]
    assert is_kept(plane)
    plane.node_comes()


def test_a_repave_leaves_a_controller_that_initializes_nodes(plane: Plane) -> None:
    before = plane.machines()
    operation = good(plane.cloud, "POST", f"{plane.path}/repave")
    succeeded(plane.cloud, operation["id"])
    plane.cloud.wait("the end of every machine of before", lambda: not before & plane.machines(), 60)
    assert is_kept(plane)
    plane.node_comes()


def test_a_member_without_the_tag_of_its_cluster_has_a_controller_that_ends(plane: Plane) -> None:
    """The controller looks for its cluster's name at its start, on the machine that it runs on."""
    (member,) = plane.members()
    carried = cluster_names(member)
    plane.ec2.delete_tags(Resources=[member["InstanceId"]], Tags=[{"Key": tag["Key"]} for tag in carried])
    (pod,) = plane.controllers()
    plane.kube.call("DELETE", f"/api/v1/namespaces/kube-system/pods/{pod['metadata']['name']}")
    fault = "AWS cloud failed to find ClusterID"
    plane.cloud.wait("the end of the controller", lambda: fault in plane.log_of(pod["spec"]["nodeName"]), 60)
    claim = plane.claim()
    node = plane.cloud.wait("the node", lambda: plane.node(claim), 120)
    assert UNINITIALIZED in node["spec"]["taints"]
    plane.ec2.create_tags(Resources=[member["InstanceId"]], Tags=carried)
    plane.available(claim)
    good(plane.cloud, "DELETE", f"node-claims/{claim}")


def test_the_driver_makes_volumes_for_members_and_nodes(plane: Plane) -> None:
    if reason := build.missing_driver():
        pytest.skip(reason)
    claim = plane.claim()
    plane.available(claim)
    (member,), node = plane.members(), plane.node(claim)
    machine = node["spec"]["providerID"].rpartition("/")[2]
    zones = plane.cloud.wait("the driver on both", lambda: plane.places({machine, member["InstanceId"]}), 90)
    zone = node["metadata"]["labels"]["topology.kubernetes.io/zone"]
    assert (zones[machine], zones[member["InstanceId"]]) == (zone, member["Placement"]["AvailabilityZone"])
    (root,) = plane.cloud.wait("the driver's controller", lambda: plane.pod_folders(OF_CONTROLLER), 60)

    def call(method: str, **request: Any) -> Any:
        return plane.ask_driver(root, OF_CONTROLLER, f"Controller/{method}", request)

    way = {"mount": {"fsType": "ext4"}, "accessMode": {"mode": "SINGLE_NODE_WRITER"}}
    wish = {"name": "pvc-1", "capacityRange": {"requiredBytes": 2**30}, "volumeCapabilities": [way]}
    place = {"requisite": [{"segments": {ZONE: zone}}], "preferred": [{"segments": {ZONE: zone}}]}
    parameters = dict(manifests.STORAGE_CLASS["parameters"])  # type: ignore[call-overload]
    volume = call("CreateVolume", **wish, parameters=parameters, accessibilityRequirements=place)["volume"]["volumeId"]
    (disk,) = plane.ec2.describe_volumes(VolumeIds=[volume])["Volumes"]
    assert (disk["Encrypted"], disk["VolumeType"], disk["AvailabilityZone"]) == (True, "gp3", zone)
    marks = tags.mapping(disk["Tags"])
    assert marks[tags.kubernetes(plane.cluster["client_id"])] == "owned", "a deletion finds it by this"
    assert marks["stockyard:tenant"] == "acme"
    call("ControllerPublishVolume", volumeId=volume, nodeId=machine, volumeCapability=way)
    (disk,) = plane.ec2.describe_volumes(VolumeIds=[volume])["Volumes"]
    assert [(item["InstanceId"], item["State"]) for item in disk["Attachments"]] == [(machine, "attached")]
    call("ControllerUnpublishVolume", volumeId=volume, nodeId=machine)
    call("DeleteVolume", volumeId=volume)
    assert volume not in [item["VolumeId"] for item in plane.ec2.describe_volumes()["Volumes"]]
    good(plane.cloud, "DELETE", f"node-claims/{claim}")


def test_a_restored_control_plane_has_a_controller_that_initializes_nodes(plane: Plane) -> None:
    plane.change({"settings": {"etcd_backup": {"interval_hours": 24, "keep": 2}}})
    snapshots = f"{plane.path}/snapshots"
    plane.cloud.wait("a snapshot", lambda: good(plane.cloud, "GET", snapshots)["items"], 90)
    plane.kube.call("POST", MAPS, {"metadata": {"name": "younger"}})
    plane.ec2.terminate_instances(InstanceIds=[member["InstanceId"] for member in plane.members()])
    operation = good(plane.cloud, "POST", f"{plane.path}/restore", {"snapshot": "latest"})
    succeeded(plane.cloud, operation["id"])
    assert is_kept(plane)
    assert "younger" not in json.dumps(plane.kube.call("GET", MAPS)["items"]), "it is younger than the snapshot"
    plane.node_comes()


def test_a_control_plane_of_three_has_a_controller_on_each_member(plane: Plane) -> None:
    plane.change({"settings": {"control_plane_size": 3}})
    plane.cloud.wait("a controller on each member", lambda: len(plane.controllers()) == 3, 60)
    assert len(plane.members()) == 3
    for pod in plane.controllers():
        plane.cloud.wait("its start", lambda node=pod["spec"]["nodeName"]: "leaderelection" in plane.log_of(node), 60)
    plane.node_comes()
    good(plane.cloud, "DELETE", plane.path)
    plane.cloud.wait("the end of its programs", lambda: not programs_of(plane.cloud), 120)
    plane.cloud.wait("the end of its files", lambda: not files_of(plane.cloud), 60)
