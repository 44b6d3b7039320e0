"""A cluster on EC2 of the served cloud with a real control plane: its members, its nodes, and what is asked of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from local.aws.accounts import ACME_ACCOUNT, REGION
from local.kubernetes.real import build
from local.kubernetes.real.client import Client
from local.kubernetes.real.kubelet import UNINITIALIZED
from stockyard.providers.clouds.aws import tags
from tests.kubernetes.members.volumes import Driver
from tests.kubernetes.test_served import good, succeeded

if TYPE_CHECKING:
    from local.testing.serving import Served

CONTROLLERS = "/api/v1/namespaces/kube-system/pods?labelSelector=k8s-app%3Daws-cloud-controller-manager"


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
        answer = self.cloud.change("PATCH", f"/v1/{self.path}", document)
        assert answer.status in (200, 202), answer.text
        succeeded(self.cloud, answer.body["operation_id"])

    def claim(self) -> str:
        """A new claim; its id."""
        return str(
            good(self.cloud, "POST", "node-claims", {"cluster": self.cluster["id"], "resources": {"cpu": 1}})["id"]
        )

    def node_comes(self) -> None:
        """A node becomes Available, which the cloud's controller has initialized. It and all members take volumes; it
        is of no use any more then."""
        claim = self.claim()
        self.available(claim)
        self.take_volumes(self.instances_of([claim]))
        good(self.cloud, "DELETE", f"node-claims/{claim}")

    def take_volumes(self, nodes: Sequence[dict[str, Any]] = ()) -> None:
        """Volumes come and go on each member and on the machines of ``nodes``."""
        if not build.missing_driver():
            self.driver.serves(self.places([*self.members(), *nodes]), self.marks)

    @cached_property
    def driver(self) -> Driver:
        """The driver of volumes."""
        (folder,) = (path.name for path in (self.cloud.home / "planes").iterdir())
        return Driver(self.cloud, folder, self.ec2)

    @property
    def marks(self) -> dict[str, str]:
        """The tags by which a deletion finds the cluster's volumes, and we know whose they are."""
        return {tags.kubernetes(self.cluster["client_id"]): "owned", tags.TENANT: "acme"}

    def places(self, instances: Sequence[dict[str, Any]]) -> dict[str, str]:
        """Instance -> zone, as EC2 has them."""
        return {each["InstanceId"]: each["Placement"]["AvailabilityZone"] for each in instances}

    def instances_of(self, claims: Sequence[str]) -> list[dict[str, Any]]:
        """The machines of the claims' nodes."""
        machine_ids = [self.node(claim)["spec"]["providerID"].rpartition("/")[2] for claim in claims]
        listed = self.ec2.describe_instances(InstanceIds=machine_ids)["Reservations"]
        return [instance for reservation in listed for instance in reservation["Instances"]]

    def claims_of(self, pool: str) -> list[dict[str, Any]]:
        """The claims of a pool."""
        items = good(self.cloud, "GET", f"node-claims?cluster={self.cluster['id']}")["items"]
        return [item for item in items if item["name"].startswith(f"{pool}-")]

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

    def log_of(self, node: str) -> str:
        """Output of the controllers on a node."""
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
