"""A tenant with a cluster on EC2 and its agent, in virtual time; what people, pods and machines do in it."""

from __future__ import annotations

import gzip
import json
import random
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from agent.stockyard_agent.kubernetes import Kubernetes
from agent.stockyard_agent.pod_reports import PodReports
from agent.stockyard_agent.stockyard_api import PodsAnswer
from benchmarks.virtual_time.engine import BEGAN
from benchmarks.virtual_time.kubernetes import PlayedKubernetes
from benchmarks.virtual_time.stage import Stage
from stockyard import wiring
from stockyard.adapters.catalog import OFFLINE_REGION
from stockyard.domain.nodes.records import PlacementOption
from stockyard.domain.pools.records import DYNAMIC, POOL_LABEL, Pool, cluster_claim, pool_id
from stockyard.domain.records import (
    CloudAccount,
    Cluster,
    Fact,
    Name,
    NodeClaim,
    NodeEnvironment,
    NodeProvider,
    Placement,
    Record,
    Resource,
)
from stockyard.domain.values import ids, times
from stockyard.domain.values.conditions import Condition
from stockyard.domain.values.requirements import CAPACITY_TYPE, IN, NODE_TYPE, ZONE
from stockyard.lifecycle.pools.pool import decide
from stockyard.operations.node_claims.work import environment_id
from stockyard.ports import MachineIdentity, Put
from stockyard.providers.nodes.ec2.node_class import NodeClass

TENANT, PROVIDER, CLIENT, POOL = "acme", "ec2", "demo-0123456789ab", "web"
ACCOUNT = "222222222222"
NODE_KIND = "m6i.large"
PODS, NODES = "/api/v1/pods", "/api/v1/nodes"


@dataclass
class Scene:
    """``nodes`` nodes of the pool are there, spot where ``spot``, each with one pod that fills it."""

    stage: Stage
    nodes: int = 3
    spot: bool = False
    kube: PlayedKubernetes = field(init=False)
    cluster: Cluster = field(init=False)
    claims: list[NodeClaim] = field(default_factory=list)
    _ids: random.Random = field(default_factory=lambda: random.Random(1))
    """Of ids, which are the same in every scene: by them what is there in EC2 is known again."""

    def __post_init__(self) -> None:
        self.kube = PlayedKubernetes(self.stage.time, self.stage.delays)
        now = times.to_text(self.stage.time.moment())
        records = list(self._records(now))
        store = wiring.registry().store(TENANT)
        for begin in range(0, len(records), 90):
            store.commit(*(Put(record) for record in records[begin : begin + 90]))
        for claim in self.claims:
            self._node(claim, now)

    def _id(self, prefix: str) -> str:
        return ids.make(prefix, BEGAN, self._ids.randbytes(10))

    def _records(self, now: str) -> Sequence[Record]:
        role = {"role_arn": f"arn:aws:iam::{ACCOUNT}:role/stockyard"}
        account = CloudAccount("1", "aws", "main", "", role, "external", "verified", "", now, now, verified_at=now)
        self.cluster = Cluster(
            id=self._id(ids.CLUSTER), name="demo", description="", cluster_type="k8s", provider="aws",
            cloud_account_id=1, client_id=CLIENT, status="ready", settings={"region_name": OFFLINE_REGION},
            created_at=now, updated_at=now, driver="ec2",
        )  # fmt: skip
        # The offline catalogue has no spot prices: a spot node's replacement is on demand.
        kinds = ["spot", "on-demand"] if self.spot else ["on-demand"]
        block = {
            "cloudAccount": 1,
            "region": OFFLINE_REGION,
            "instanceTypes": ["m6i.*", "m5.*"],
            "capacityTypes": kinds,
        }
        provider = NodeProvider(self._id(ids.NODE_PROVIDER), PROVIDER, "ec2", {"ec2": block}, now, now)
        zones = {f"subnet-{letter}": f"{OFFLINE_REGION}{letter}" for letter in "abc"}
        day = self.stage.time.moment().date().isoformat()
        node_class = NodeClass(
            zones, ("sg-1",), "nodes", {"amd64": "ami-1"}, generation=provider.generation, found_on=day
        )
        environment = NodeEnvironment(
            environment_id(self.cluster.id, provider.id), self.cluster.id, provider.id, provider.name, now, now,
            phase="Available", outputs=node_class.facts(),
        )  # fmt: skip
        self.claims = [self._claim(provider, number, kinds[0], now) for number in range(self.nodes)]
        pool = Pool(
            id=pool_id(self.cluster.id, POOL), cluster_id=self.cluster.id, name=POOL, created_at=now, updated_at=now,
            kind=DYNAMIC, provider_ref=PROVIDER, created_by="user:ann",
            requirements=({"key": CAPACITY_TYPE, "operator": IN, "values": kinds},),
        )  # fmt: skip
        pool = decide(pool, self.cluster, self.claims, now).pool
        records: list[Record] = [account, self.cluster, provider, environment, pool, *self.claims]
        records += [cluster_claim(self.cluster.id, POOL, claim.id, now) for claim in self.claims]
        records += [Name(f"node-claim/{claim.name}", claim.id) for claim in self.claims]
        records += [self._line(claim) for claim in self.claims]
        return records

    def _claim(self, provider: NodeProvider, number: int, capacity_type: str, now: str) -> NodeClaim:
        name, zone = f"{POOL}-{number:05}", f"{OFFLINE_REGION}a"
        kinds = ("Scheduled", "Provisioned", "Joined", "Ready")
        type_ref = f"{PROVIDER}.{NODE_KIND}"
        way = PlacementOption(type_ref, capacity_type, (zone,), 0.1, 0.1)
        self.stage.cloud.machines[f"i-{number:017x}"] = {
            "InstanceId": f"i-{number:017x}", "InstanceType": NODE_KIND, "Placement": {"AvailabilityZone": zone},
            "State": {"Name": "running"}, "Tags": [],
        }  # fmt: skip
        operation = self._id(ids.OPERATION)
        wishes = {NODE_TYPE: [type_ref], ZONE: [zone], CAPACITY_TYPE: [capacity_type]}
        return NodeClaim(
            id=self._id(ids.NODE_CLAIM), name=name, created_at=now, updated_at=now, cluster_ref=self.cluster.id,
            cluster_id=self.cluster.id, provider_ref=PROVIDER, properties={POOL_LABEL: POOL}, labels={POOL_LABEL: POOL},
            requirements=tuple({"key": key, "operator": IN, "values": values} for key, values in wishes.items()),
            resources={"cpu": "1"}, pool=POOL, pool_generation=1, type_ref=type_ref,
            environment_ref=environment_id(self.cluster.id, provider.id), phase="Available",
            conditions=tuple(Condition(kind, "True", kind, f"{kind}.", now) for kind in kinds),
            placement=Placement(provider.id, type_ref, capacity_type, (zone,), 0.1, now, 0.1, options=(way,)),
            machine_id=f"i-{number:017x}", node_name=name, node_labels={ZONE: zone, POOL_LABEL: POOL},
            operation_id=operation, execution=f"{operation}-1", created_by="user:ann", sequence=8, version=9,
        )  # fmt: skip

    def _line(self, claim: NodeClaim) -> Resource:
        """The line of the ledger that has the claim's machine."""
        earlier = times.to_text(self.stage.time.moment() - timedelta(hours=1))
        return Resource(
            f"{claim.id}/launch/instance/machine", claim.id, "launch", "instance", "machine", "t" * 32, "made",
            OFFLINE_REGION, 1, earlier, str(claim.machine_id), earlier, {"capacity_type": "on-demand"},
        )  # fmt: skip

    def _node(self, claim: NodeClaim, now: str) -> None:
        self.kube.put(NODES, {
            "metadata": {"name": claim.name, "uid": f"node-{claim.name}", "creationTimestamp": now,
                         "labels": {**claim.node_labels, "stockyard.dev/claim": claim.id,
                                    "node.kubernetes.io/instance-type": NODE_KIND, "kubernetes.io/arch": "amd64",
                                    "kubernetes.io/os": "linux", "kubernetes.io/hostname": claim.name}},
            "spec": {}, "status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": now}],
                                   "allocatable": {"cpu": "1930m", "memory": "7Gi", "pods": "29"}},
        })  # fmt: skip
        self.pod(f"full-{claim.name}", claim.name)

    # --- what happens ---

    def pod(self, name: str, node: str | None = None) -> None:
        """A pod that fills a node: on that node, or one for which the scheduler has found none."""
        now = times.to_text(self.stage.time.moment())
        refusal = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "0/3 nodes are available: 3 Insufficient cpu.",
        }
        placed = {"type": "PodScheduled", "status": "True", "lastTransitionTime": now}
        requests = {"requests": {"cpu": "1500m", "memory": "2Gi"}}
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs-web", "controller": True}
        self.kube.put(PODS, {
            "metadata": {"name": name, "namespace": "default", "uid": f"pod-{name}", "creationTimestamp": now,
                         "labels": {"app": "web"}, "ownerReferences": [owner]},
            "spec": {"containers": [{"name": "app", "resources": requests}], "schedulerName": "default-scheduler",
                     **({"nodeName": node} if node else {})},
            "status": {"phase": "Running" if node else "Pending", "conditions": [placed if node else refusal]},
        })  # fmt: skip

    def watch_pods(self) -> None:
        """Let the cluster's agent follow its pods from now on."""
        exchange = self.kube.exchange
        reports = PodReports(
            Kubernetes("https://cluster.example", exchange, lambda: "token"),
            _Api(self),  # type: ignore[arg-type]
            now=self.stage.time.moment,
            monotonic=lambda: 1000.0 + self.stage.time.now,
            jitter=random.Random(self.stage.delays.seed).random,
            log=lambda _: None,
        )

        def follow() -> None:
            def pause(seconds: float) -> bool:
                self.stage.time.sleep(max(seconds, 0.001))
                return False

            reports.run(pause)

        self.stage.time.spawn(follow, self.stage.delays.between(0, 1))

    def request(
        self, function: str, method: str, path: str, template: str, body: bytes, *, machine: bool = False
    ) -> Any:
        """Send a request of an agent (``machine``) or an administrator, and wait for its answer."""
        own = {"sub": "service", "organization": [TENANT], "azp": CLIENT}
        claims = (
            own if machine else {"sub": "ann", "organization": [TENANT], "realm_access": {"roles": ["stockyard-admin"]}}
        )
        payload = urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
        kind = "application/gzip" if machine and template.endswith("pending-pods") else "application/json"
        data = gzip.compress(body, 6, mtime=0) if kind == "application/gzip" else body
        headers = {"authorization": f"Bearer x.{payload}.x", "content-type": kind}
        event = {
            "version": "2.0",
            "routeKey": f"{method} {template}",
            "rawPath": path,
            "rawQueryString": "",
            "headers": {**headers, "idempotency-key": self.stage.delays.bytes(8).hex()},
            "requestContext": {
                "http": {"method": method, "path": path},
                "requestId": "r",
                "authorizer": {"jwt": {"claims": {}}},
            },
            "body": b64encode(data).decode(),
            "isBase64Encoded": True,
        }
        draw = self.stage.delays.draw
        self.stage.time.sleep(draw("network") + draw("gateway") + draw("invoke"))
        answer = self.stage.invoke(function, event)
        self.stage.time.sleep(draw("network"))
        if answer["statusCode"] >= 300:
            raise AssertionError(f"{method} {path}: {answer['statusCode']} {answer['body']}")
        return json.loads(answer["body"] or "null")

    def new_claim(self) -> None:
        """An administrator asks for a node."""
        body = {"cluster": self.cluster.id, "provider": PROVIDER, "resources": {"cpu": "1"}}
        self.request("node_claims", "POST", "/v1/node-claims", "/v1/node-claims", json.dumps(body).encode())

    def delete_claim(self) -> None:
        """An administrator gives the first node back."""
        path = f"/v1/node-claims/{self.claims[0].id}"
        self.request("node_claims", "DELETE", path, "/v1/node-claims/{id}", b"")

    def warn(self) -> None:
        """The first node's machine has read that its cloud takes it back in two minutes, and tells."""
        claim = self.claims[0]
        at = times.to_text(self.stage.time.moment().replace(microsecond=0))
        body = {
            "method": "POST", "url": "https://sts.example/machine", "headers": {"x": "y"}, "kind": "interruption",
            "cluster_id": self.cluster.id, "time": at,
        }  # fmt: skip
        path = f"/v1/node-claims/{claim.id}/interruptions"
        self.request(
            "machines", "POST", path, "/v1/node-claims/{id}/interruptions", json.dumps(body).encode(), machine=True
        )

    def known_machine(self) -> Any:
        """An attestor that knows the first node's machine."""
        scene = self

        class Attestor:
            def caller(self, _: Mapping[str, Any]) -> MachineIdentity:
                """See ``ports.MachineAttestor``."""
                scene.stage.time.sleep(scene.stage.delays.draw("session"))
                return MachineIdentity(ACCOUNT, f"vantage-{CLIENT}-node-role", scene.claims[0].machine_id or "")

        return Attestor()

    def tell_node(self) -> None:
        """The first node as the agent has told of it before."""
        claim, now = self.claims[0], times.to_text(self.stage.time.moment())
        node = json.dumps({"name": claim.name, "uid": f"node-{claim.name}", "ready": "True"})
        wiring.registry().store(TENANT).commit(Put(Fact(f"{claim.id}/node", node, now)))


class _Api:
    """``StockyardApi`` of the agent, over the gateway of the stage."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    def report_pods(self, body: bytes) -> PodsAnswer:
        """See ``StockyardApi.report_pods``."""
        path = f"/v1/clusters/{self._scene.cluster.id}/pending-pods"
        template = "/v1/clusters/{id}/pending-pods"
        answer = self._scene.request("machines", "POST", path, template, body, machine=True)
        return PodsAnswer(answer["sequence"], answer["resync"], answer["interval_seconds"])
