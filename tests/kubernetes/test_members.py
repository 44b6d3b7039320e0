"""Real control planes of several members: each machine runs what it is told at its first boot, with real kubeadm,
etcd and API servers. It grows, a member is lost and replaced, it is brought to the next minor, and a snapshot is
restored; what was written before is there each time."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml

from agent.roles import JOINERS, NODE_GROUP
from agent.stockyard_agent.authority import pin
from local.kubernetes.real import build
from stockyard.kubernetes_versions import TESTED
from stockyard.machines import control_plane
from stockyard.machines.cloud_config import File, FirstBoot
from tests.kubernetes.members import town as towns
from tests.kubernetes.members.stockyard import CLUSTER, PORT, URL, Member, Stockyard
from tests.kubernetes.members.town import NETWORK_MANIFEST, Town, until

pytestmark = pytest.mark.timeout(1200)

OLD, NEW = build.minors()
MANIFEST = "flannel-io/flannel/1/Documentation/kube-flannel.yml"
SECRET = "hunter2-of-the-tests"
ANNOUNCED, VOTING = "announced", "voting"
SYSTEM = ("kubectl", "--namespace", "kube-system", "get")


class Plane:
    """A control plane in a town. ``living`` are its members by name, in the order in which they have joined."""

    def __init__(self, town: Town, stockyard: Stockyard) -> None:
        self.town, self.stockyard, self.living = town, stockyard, list[str]()
        self._claims: dict[str, str] = {}
        self._number, self._approves = 0, True
        self._ended = threading.Event()
        threading.Thread(target=self._approve, daemon=True).start()

    def begin(self, minor: str, name: str = "first") -> None:
        """A first member initialises the control plane, or goes on with what its volume has."""
        self.stockyard.ready.clear()
        boot = self._boot(minor, CLUSTER)
        digest = hashlib.sha256(NETWORK_MANIFEST.encode()).hexdigest()
        boot.files["/etc/stockyard/manifests/sums"] = File(f"{digest}  {MANIFEST}\n")
        self.living = [name]
        self._switch_on(name, boot, minor)
        self.town.targets(name)
        until(lambda: self.stockyard.ready, f"the first member\n{self.town.log(name)[-3000:]}")
        self.stockyard.authority = pin(self.on(name, "cat", "/etc/kubernetes/pki/ca.crt"))
        self._address()

    def begin_from_snapshot(self, name: str, minor: str) -> Member:
        """A new member begins the control plane anew from the snapshot in the store. Nobody else is one then."""
        member = Member(name, TESTED[minor].release, begins=True, done=True)
        claim_id = self.stockyard.claim(len(self._claims) + 1, member)
        self._claims[name] = claim_id
        self._switch_on(name, self._boot(minor, claim_id), minor)
        until(lambda: member.reports, f"the report of {name}\n{self.town.log(name)[-3000:]}")
        self.living = [name]
        self.town.targets(name)
        self._address()
        until(lambda: self._has(name, "/var/lib/stockyard/reported"), f"the end of the start of {name}")
        return member

    def add(
        self, name: str, minor: str, *, dead: tuple[str, ...] = (), leaving: str = "", interrupted: str = ""
    ) -> Member:
        """A further member joins; then ``leaving`` is taken out of etcd, and goes. ``interrupted``: the machine is
        switched off when it is ``ANNOUNCED`` to etcd or ``VOTING`` there without a node, and on again."""
        member = Member(name, TESTED[minor].release, remove_before=dead, remove_after=(leaving,) if leaving else ())
        claim_id = self.stockyard.claim(len(self._claims) + 1, member)
        self._claims[name] = claim_id
        self._token(claim_id, name)
        boot = self._boot(minor, claim_id)
        self._approves = interrupted != VOTING
        self._switch_on(name, boot, minor)
        if interrupted:
            self._interrupt(name, boot, TESTED[minor].release, voting=interrupted == VOTING)
        until(lambda: member.reports, f"the report of {name}\n{self.town.log(name)[-3000:]}")
        self.living.append(name)
        if leaving:
            self.living.remove(leaving)
        self.town.targets(*self.living)
        if leaving:
            until(lambda: leaving in member.reports[-1]["removed"], f"the removal of {leaving}")
            self.on(name, "kubectl", "delete", "node", leaving)
            self.town.kill(leaving)
        member.done = True
        until(lambda: self._has(name, "/var/lib/stockyard/reported"), f"the end of the start of {name}")
        self._address()
        return member

    def lose(self, name: str) -> None:
        """A member's machine is gone for ever."""
        self.town.kill(name)
        self.living.remove(name)
        self.town.targets(*self.living)
        self._address()

    def on(self, name: str, *command: str) -> str:
        return self.town.run(name, *command)

    def voters(self, name: str) -> set[str]:
        """The voting members of etcd, as the member knows them; nobody else is one."""
        assert not [member for member in self._etcd(name) if member.get("isLearner")]
        return self._votes(name)

    def write(self, name: str) -> None:
        """A ConfigMap and a Secret of that name."""
        member = self.living[0]
        self.on(member, "kubectl", "create", "configmap", name, f"--from-literal=of={name}")
        self.on(member, "kubectl", "create", "secret", "generic", name, f"--from-literal=password={SECRET}")

    def check(self, *written: str) -> None:
        """Each member's own API server and etcd have what was written, and nobody else is a member."""
        for member in self.living:
            assert self.voters(member) == set(self.living)
            for name in written:
                data = json.loads(self.on(member, "kubectl", "get", "secret", name, "--output", "json"))["data"]
                assert base64.b64decode(data["password"]).decode() == SECRET
                self.on(member, "kubectl", "get", "configmap", name)

    def releases(self) -> dict[str, str]:
        """Release of each member's API server, by its own word."""
        versions = {name: json.loads(self.on(name, "kubectl", "get", "--raw", "/version")) for name in self.living}
        return {name: version["gitVersion"] for name, version in versions.items()}

    def end(self) -> None:
        self._ended.set()

    def _boot(self, minor: str, subject: str) -> FirstBoot:
        joins = subject != CLUSTER
        return control_plane.ControlPlaneMachine(
            api_url=URL,
            cluster_id=CLUSTER,
            client_id="members-0123456789ab",
            kubernetes_version=minor,
            issuer="https://id.example.test/realms/stockyard",
            tenant="acme",
            token=self.stockyard.machine_token(subject),
            joins=joins,
            claim_id=subject if joins else "",
        ).first_boot()

    def _switch_on(self, name: str, boot: FirstBoot, minor: str) -> None:
        self._number += 1
        self.town.boot(name, self._number, boot, TESTED[minor].release)

    def _token(self, claim_id: str, node: str) -> None:
        """The bootstrap token, as the agent makes it."""
        token = self.stockyard.join_token(claim_id)
        identity, _, secret = token.partition(".")
        ends = (datetime.now(UTC) + timedelta(minutes=15)).strftime("%Y-%m-%dT%H:%M:%SZ")
        data = {
            "token-id": identity,
            "token-secret": secret,
            "expiration": ends,
            "usage-bootstrap-authentication": "true",
            "usage-bootstrap-signing": "true",
            "auth-extra-groups": f"{JOINERS},{NODE_GROUP}{node}",
        }
        name = f"bootstrap-token-{identity}"
        metadata = {"name": name, "namespace": "kube-system"}
        kind = "bootstrap.kubernetes.io/token"
        document = {"apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": metadata, "stringData": data}
        self.town.run(self.living[0], "kubectl", "apply", "-f", "-", input=json.dumps(document))

    def _interrupt(self, name: str, boot: FirstBoot, kubernetes: str, *, voting: bool) -> None:
        until(lambda: self._has(name, "/etc/kubernetes/manifests/etcd.yaml"), f"etcd of {name}")
        if voting:
            until(lambda: name in self._votes(self.living[0]), f"the vote of {name}")
        self.town.kill(name)
        self.town.boot(name, self._number, boot, kubernetes)
        self._approves = True

    def _votes(self, name: str) -> set[str]:
        """The voting members of etcd, as the member knows them."""
        return {member["name"] for member in self._etcd(name) if not member.get("isLearner") and "name" in member}

    def _etcd(self, name: str) -> list[dict[str, Any]]:
        client = "/etc/kubernetes/pki/etcd/healthcheck-client"
        keys = ("--cacert=/etc/kubernetes/pki/etcd/ca.crt", f"--cert={client}.crt", f"--key={client}.key")
        members: list[dict[str, Any]] = json.loads(
            self.on(name, "etcdctl", *keys, "member", "list", "--write-out=json")
        )["members"]
        return members

    def _approve(self) -> None:
        """The agent approves the first certificate of a node by its own token."""
        while not self._ended.wait(0.5):
            if not self._approves:
                continue
            with suppress(AssertionError, KeyError, IndexError, ValueError):
                listed = json.loads(self.on(self.living[0], "kubectl", "get", "csr", "--output", "json"))["items"]
                for request in listed:
                    if not request["status"] and request["spec"]["username"].startswith("system:bootstrap:"):
                        self.on(self.living[0], "kubectl", "certificate", "approve", request["metadata"]["name"])

    def _has(self, name: str, path: str) -> bool:
        return bool(self.town.run(name, "sh", "-c", f"ls {path} 2>/dev/null || true"))

    def _address(self) -> None:
        self.stockyard.addresses[:] = [self.town.machines[name].address for name in self.living]


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    for reason in (build.missing(), build.missing_previous(), towns.missing()):
        if reason:
            pytest.skip(reason)
    with Town(tmp_path_factory.mktemp("town") / "members") as town:
        plane = Plane(town, Stockyard(town.listener(PORT)))
        yield plane
        plane.end()


@pytest.fixture(scope="module")
def three(plane: Plane) -> Plane:
    """Grown from one to three members. Both others were switched off on the way, and went on by themselves: the second
    when it was a voter already, so that etcd had no quorum meanwhile, the third when etcd just knew of it."""
    plane.begin(OLD)
    plane.write("before")
    plane.add("second", OLD, interrupted=VOTING)
    plane.write("two")
    plane.add("third", OLD, interrupted=ANNOUNCED)
    plane.write("three")
    plane.on("first", "bash", control_plane.SNAPSHOT_PATH)
    plane.write("later")
    return plane


def test_a_control_plane_grows_to_three_members(three: Plane) -> None:
    three.check("before", "two", "three")
    assert set(three.releases().values()) == {f"v{TESTED[OLD].release}"}
    assert three.stockyard.faults == []
    log = three.town.log("second")
    assert log.count("[kubelet-start] Starting the kubelet") == 2, "it was cut off, and its kubelet got another token"
    assert log.count("[etcd] Announced new etcd member") == 1, "a voter is never begun anew"
    sealed = json.loads(three.on("first", *SYSTEM, "secret", "kubeadm-certs", "-o", "json"))
    assert "ownerReferences" not in sealed["metadata"], "it would end after two hours"


def test_all_members_seal_secrets_alike_and_no_key_stays_on_a_disk(three: Plane) -> None:
    sealings = {three.on(name, "cat", "/etc/stockyard/api/encryption.yaml") for name in three.living}
    assert len(sealings) == 1
    for name in three.living[1:]:
        assert "join.yaml" not in three.on(name, "ls", "/etc/stockyard")
    nodes = json.loads(three.on("second", "kubectl", "get", "nodes", "-o", "json"))["items"]
    for node in nodes:
        assert "node-role.kubernetes.io/control-plane" in node["metadata"]["labels"]
        taints = {taint["key"]: taint["effect"] for taint in node["spec"]["taints"]}
        assert taints["node-role.kubernetes.io/control-plane"] == "NoSchedule"


NEAR = """import json, sys
sys.path.insert(0, "/usr/local/lib/stockyard")
import stockyard_near
print(json.dumps(stockyard_near.members({"host": "api.members.test", "port": 6443})))
"""


def test_a_node_may_ask_which_members_there_are(three: Plane) -> None:
    """The node asks by its own certificate: so a node finds members that have taken the place of those it was told
    of."""
    addresses = {three.town.machines[name].address for name in three.living}
    until(lambda: set(json.loads(three.on("third", "python3", "-c", NEAR))) == addresses, "the list of members", 60)


def test_people_get_the_kubeconfig_of_a_member_that_is_there(three: Plane) -> None:
    members = list(three.stockyard.claims.values())
    configs = [yaml.safe_load(member.kubeconfig) for member in members]
    assert {config["clusters"][0]["cluster"]["server"] for config in configs} == {"https://api.members.test:6443"}
    assert len({config["users"][0]["user"]["client-certificate-data"] for config in configs}) == len(members) > 1


@pytest.fixture(scope="module")
def replaced(three: Plane) -> Plane:
    """A member was lost, and another one has its place."""
    three.lose("second")
    three.write("without")
    three.add("fourth", OLD, dead=("second",))
    three.on("fourth", "kubectl", "delete", "node", "second")
    return three


def test_a_dead_member_is_replaced(replaced: Plane) -> None:
    replaced.check("before", "three", "without")


@pytest.fixture(scope="module")
def upgraded(replaced: Plane) -> Plane:
    """Each member has made room for one of the next minor."""
    for leaving, name in (("first", "fifth"), ("third", "sixth"), ("fourth", "seventh")):
        replaced.add(name, NEW, leaving=leaving)
        replaced.check("before")
    return replaced


def test_a_control_plane_is_brought_to_the_next_minor(upgraded: Plane) -> None:
    upgraded.check("before", "two", "three", "without")
    assert set(upgraded.releases().values()) == {f"v{TESTED[NEW].release}"}
    settings = upgraded.on("seventh", *SYSTEM, "configmap", "kubeadm-config", "-o", "yaml")
    assert f"kubernetesVersion: v{TESTED[NEW].release}\n" in settings
    image = upgraded.on("seventh", *SYSTEM, "daemonset", "kube-proxy", "-o", "jsonpath={..image}")
    assert image.endswith(f":v{TESTED[NEW].release}")


@pytest.fixture(scope="module")
def restored(upgraded: Plane) -> Plane:
    """All members are lost. The volume of the first one, with its snapshots, is given to another machine."""
    for name in list(upgraded.living):
        upgraded.lose(name)
    upgraded.town.take_volume("first", "restored", TESTED[OLD].release)
    upgraded.begin(OLD, "restored")
    return upgraded


def test_a_snapshot_is_restored_and_the_control_plane_grows_again(restored: Plane) -> None:
    restored.check("before", "two", "three")
    assert restored.town.run("restored", "kubectl", "get", "configmap", "later", "--ignore-not-found") == ""
    restored.add("ninth", OLD)
    restored.write("grown")
    restored.check("before", "two", "three", "grown")
