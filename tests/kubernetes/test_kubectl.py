"""Commands of the first day, by a real kubectl of each release that is built, at a simulated cluster."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from local.kubernetes.cluster import Kubelet
from local.kubernetes.clusters import Clusters
from local.kubernetes.real.build import kubectl, releases
from local.kubernetes.simulated import ADMINISTRATOR, SimulatedCluster
from tests.kubernetes.rigs import until

FILE = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: api, labels: {app: api}}
spec:
  replicas: 2
  selector: {matchLabels: {app: api}}
  template:
    metadata: {labels: {app: api}}
    spec:
      containers: [{name: c, image: "nginx:1", resources: {requests: {cpu: 100m}}}]
---
apiVersion: v1
kind: Service
metadata: {name: api}
spec: {selector: {app: api}, ports: [{port: 80}]}
"""
IN_NAME_ONLY = "pods of a simulated cluster run in name only"


@dataclass
class Kubectl:
    """One client, and the folder that it is run in."""

    program: Path
    folder: Path

    def run(self, *words: str) -> tuple[int, str]:
        """The exit code, and what is printed."""
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "KUBECONFIG": str(self.folder / "config")}
        done = subprocess.run(
            [str(self.program), *words],
            cwd=self.folder,
            env={**environment, "EDITOR": "sed -i s/nginx:2/nginx:4/"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    def says(self, command: str, *patterns: str) -> str:
        """Run a command that succeeds, and expect what it prints."""
        code, text = self.run(*command.split())
        assert code == 0, f"{command}: {text}"
        for pattern in patterns:
            assert re.search(pattern, text, re.MULTILINE), f"{command}: {pattern!r} is not in\n{text}"
        return text

    def refuses(self, command: str, sentence: str) -> None:
        """Run a command that fails with one sentence."""
        code, text = self.run(*command.split())
        assert code != 0, f"{command}: {text}"
        assert sentence in text, f"{command}: {text}"
        assert len(text.strip().splitlines()) <= 2, text


@pytest.fixture(scope="module", params=releases().values(), ids=list(releases()))
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    program = kubectl(request.param)
    if not program.exists():
        pytest.skip(f"kubectl of {request.param} not built: run make kubernetes")
    folder = tmp_path_factory.mktemp("kubectl")
    clusters = Clusters(folder / "log")
    cluster = SimulatedCluster("api.test:6443", f"v{request.param}", folder / "cluster", folder / "log")
    clusters.add(cluster)
    cluster.start()
    clusters.start()
    cluster.register("plane", Kubelet("aws:///us-east-1a/i-0", 2, 8192, address="10.0.0.4"))
    cluster.register("worker", Kubelet("aws:///us-east-1a/i-1", 4, 8192, address="10.0.0.5"), takes_pods=True)
    (folder / "config").write_text((folder / "cluster" / ADMINISTRATOR).read_text())
    (folder / "api.yaml").write_text(FILE)
    client = Kubectl(program, folder)
    # A kubelet has its Lease a moment after its Node.
    until(lambda: client.run("get", "lease", "worker", "--namespace=kube-node-lease")[0] == 0)
    yield client
    clusters.close()


def test_looking_around(client: Kubectl) -> None:
    version = rf"v{re.escape(client.program.parent.name)}"
    client.says("get nodes", rf"^NAME +STATUS +ROLES +AGE +VERSION$\n^plane +Ready +control-plane +\d+s +{version}$")
    client.says("get nodes -o wide", r"INTERNAL-IP", r"10\.0\.0\.5")
    client.says(
        "describe node worker", r"InternalIP: +10\.0\.0\.5", r"HolderIdentity: +worker", r"Kubelet Version: +v1"
    )
    client.says("get pods -A", "No resources found")
    client.says("version", rf"Server Version: {version}")
    client.says("cluster-info", "control plane.* is running at")
    client.says("api-resources", r"^deployments +deploy +apps/v1 +true +Deployment$")
    client.says("explain pod.spec.tolerations", r"tolerationSeconds\s<integer>")
    client.says("auth can-i create pods", "^yes$")
    client.says("auth whoami", "system:masters")
    client.says("get --raw /readyz", "ok")
    client.refuses("top nodes", "Metrics API not available")
    client.refuses("get nosuch", "the server doesn't have a resource type")
    client.refuses("get pod nosuch", 'pods "nosuch" not found')


def test_a_deployment_and_its_pods(client: Kubectl) -> None:
    client.says("create deployment web --image=nginx --replicas=3", "deployment.apps/web created")
    client.says("wait --for=condition=Available deployment/web --timeout=20s", "condition met")
    client.says("get deployments", r"^web +3/3 +3 +3 +\d+s$")
    client.says("get pods -o wide -l app=web", r"^web-\S+ +1/1 +Running +0 +\d+s +\S+ +worker ")
    client.says("scale deployment web --replicas=1", "scaled")
    client.says("rollout status deployment/web --timeout=20s", "successfully rolled out")
    client.says("wait --for=jsonpath={.status.replicas}=1 deployment/web --timeout=20s")
    pods = json.loads(client.says("get pods -l app=web -o json"))["items"]
    assert len([pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]) == 1
    client.refuses("logs deployment/web", f"{IN_NAME_ONLY}: there are no logs of pod web-")
    client.refuses("exec deploy/web -- ls", f"{IN_NAME_ONLY}: nothing can be run in pod web-")
    client.says("describe deployment web", "1 desired | 1 updated | 1 total | 1 available")
    client.says("expose deployment web --port 80", "exposed")
    client.says("get service web", r"^web +ClusterIP +10\.96\.\d+\.\d+ +<none> +80/TCP ")
    client.says("delete service,deployment web --cascade=foreground --wait")
    client.says("wait --for=delete pod -l app=web --timeout=20s")
    client.says("get all", "No resources found")


def test_a_file_is_applied_changed_and_deleted(client: Kubectl) -> None:
    client.says("apply -f api.yaml", "deployment.apps/api created", "service/api created")
    client.says("apply -f api.yaml", "deployment.apps/api unchanged", "service/api unchanged")
    path = client.folder / "api.yaml"
    path.write_text(FILE.replace("nginx:1", "nginx:2"))
    code, text = client.run("diff", "-f", "api.yaml")
    assert code == 1
    assert "+      - image: nginx:2" in text
    client.says("apply -f api.yaml", "deployment.apps/api configured")
    client.says("edit deployment api", "edited")
    client.says("apply --server-side --force-conflicts -f api.yaml", "serverside-applied")
    client.says("get deployment api -o jsonpath={.spec.template.spec.containers[0].image}", "nginx:2")
    client.says("rollout status deployment/api --timeout=20s")
    client.says("rollout undo deployment/api", "rolled back")
    client.says("set env deployment/api A=b", "env updated")
    client.says("rollout restart deployment/api", "restarted")
    client.says("label deployment api team=blue", "labeled")
    client.says("annotate deployment api why=so", "annotated")
    client.says('patch service api -p {"spec":{"ports":[{"port":80,"name":"http"}]}}', "patched")
    client.says('patch deployment api --type=json -p [{"op":"replace","path":"/spec/replicas","value":1}]', "patched")
    client.says("get service api -o yaml", r"^  - name: http$\n^    port: 80$")
    path.with_name("bad.yaml").write_text(FILE.replace("replicas:", "replica:").partition("---")[0])
    client.refuses("create -f bad.yaml", 'strict decoding error: unknown field "spec.replica"')
    client.says("delete -f api.yaml", "deleted")
    client.says("get deployments,services", "No resources found")


def test_nodes_are_cordoned_tainted_and_drained(client: Kubectl) -> None:
    client.says("run one --image=nginx", "pod/one created")
    client.says("wait --for=condition=Ready pod/one --timeout=20s", "condition met")
    client.says("taint node worker team=blue:NoSchedule", "tainted")
    client.says("taint node worker team-", "untainted")
    client.says("cordon worker", "cordoned")
    client.says("get nodes", r"^worker +Ready,SchedulingDisabled ")
    client.says("run two --image=nginx")
    client.says("wait --for=jsonpath={.status.conditions[0].reason}=Unschedulable pod/two --timeout=20s")
    client.says("describe pod two", r"FailedScheduling .* 0/2 nodes are available")
    client.says("drain worker --ignore-daemonsets --force --timeout=30s", "pod/one evicted", "drained")
    client.says("uncordon worker", "uncordoned")
    client.says("wait --for=condition=Ready pod/two --timeout=20s", "condition met")
    client.refuses(
        "debug two -c x --profile=general --image=busybox", f"{IN_NAME_ONLY}: pod two takes no container beside its own"
    )
    client.says("delete pod two --now", "deleted")


CREATIONS: Sequence[str] = (
    "namespace team", "configmap a --from-literal=x=y", "secret generic s --from-literal=p=q", "serviceaccount bot",
    "quota q --hard=pods=3", "job j --image=busybox -- date", "cronjob c --image=busybox --schedule=@daily -- date",
    "pdb p --selector=app=api --min-available=1", "role r --verb=get --resource=pods", "priorityclass high --value=10",
    "rolebinding b --role=r --user=ann", "clusterrole cr --verb=get --resource=pods", "ingress i --rule=a/b=c:80",
    "clusterrolebinding crb --clusterrole=cr --user=ann",
)  # fmt: skip


def test_every_kind_that_create_knows(client: Kubectl) -> None:
    """kubectl writes these as protobuf, and does not fall back to JSON."""
    for words in CREATIONS:
        client.says(f"create {words}", "created$")
    client.says("create token bot", r"^\S+$")
    client.says("get secret s -o jsonpath={.data.p}", "^cQ==$")
    client.says("wait --for=condition=Complete job/j --timeout=20s", "condition met")
    client.says(
        "get jobs,cronjobs,pdb", r"^job.batch/j +Complete +1/1 ", r"^cronjob.batch/c +@daily ", r"^\S+/p +1 +N/A "
    )
    client.says("create -n team configmap a --from-literal=x=y")
    client.says("delete namespace team", "deleted")
    client.refuses("get namespace team", 'namespaces "team" not found')
