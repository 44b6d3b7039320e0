"""A served cluster on EC2 with its agent, all of it in this thread: seconds of virtual time pass when somebody says so.

Requests go through the product's handlers, passes and workflows are its own, EC2 is moto's, and the agent is the real
one. It speaks to the simulated API of :mod:`plane` and to the handlers.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

from moto.ec2.models import ec2_backends

from agent import manifest
from agent.roles import NAME, NAMESPACE
from agent.stockyard_agent.certificates import Approvals
from agent.stockyard_agent.commands.inbox import CommandInbox
from agent.stockyard_agent.kubernetes import Kubernetes
from agent.stockyard_agent.loop import LOOK_SECONDS, SOON_SECONDS, Agent
from agent.stockyard_agent.mirror import Mirror
from agent.stockyard_agent.pod_reports import PodReports
from agent.stockyard_agent.stockyard_api import StockyardApi
from agent.stockyard_agent.transport import HttpRequest, HttpResponse
from functions.apply import handler as apply_handler
from functions.machines import handler as machines_handler
from functions.pools import handler as pools_handler
from local.aws.accounts import REGION
from local.cloud import ROOT
from local.functions.invocation import Invocation, failure
from local.functions.patterns import matches
from local.kubernetes.certificates import CertificateRequest
from local.kubernetes.cluster import Registration
from local.kubernetes.store import StatusError
from local.machines.booted import TERMINATED
from local.machines.instances import TAG, _kubelet, _tags
from stockyard import machines, wiring
from stockyard.domain.records import NodeClaim, Outbox
from stockyard.domain.values import ids
from stockyard.errors import StockyardError
from stockyard.lifecycle.nodes.node_phases import SCHEDULED
from stockyard.operations.engine.act import act
from stockyard.operations.listing import every
from stockyard.ports import MachineIdentity, Remove
from stockyard.wiring import passes
from tests.conformance.bug_levels.bench import Bench, ready_cluster
from tests.conformance.bug_levels.plane import Plane
from tests.harness import walk
from tests.harness.crash.ec2 import TENANT_ACCOUNT
from tests.harness.crash.world import TENANT, _event
from tests.harness.hours.timeline import Timeline
from tests.harness.worlds.inprocess import Context

TEMPLATE = ROOT / "local" / "dev_stage" / "Stockyard-dev.template.json"
KUBE, API, TOKEN_URL = "https://kube.case", "https://api.stockyard.example", "https://id.stockyard.example/token"
BOOT_SECONDS, RETRY_SECONDS = 8, 2
"""How long a machine boots until it asks how to join, and until it asks again."""
LONGEST_WAIT = 3
"""Seconds after which a workflow looks again, as in the local cloud, which has less patience than a stage."""
TICK, SWEEPS = 7, 5
"""The second of a minute at which its schedules come, and after how many minutes the sweep comes."""
ROLES = ("stockyard-operator", "stockyard-admin")
_PASS = f"https://sts.{REGION}.amazonaws.com/?machine="


class Yard:
    """One ready cluster. ``events`` are all that were told since it was ready."""

    def __init__(self, bench: Bench) -> None:
        self.world, self.clock, self.attestor = bench.world, bench.world.clock, bench.attestor
        self.cluster = ready_cluster(bench)
        self.begin = self.clock.now()
        self.time = Timeline(self.clock, self._invoke, 1)
        self.plane = Plane(self.clock.now, self.time.later)
        self.plane.api.install(manifest.documents(manifest.Settings(API, self.cluster.id, TOKEN_URL)))
        self.events: list[tuple[str, Mapping[str, Any]]] = []
        self.made: set[str] = set()
        """The ids of all claims that there ever were."""
        self.placed: dict[str, str] = {}
        """By claim the type that it says it was placed on last, without its provider."""
        self.at_work = ""
        """The id of what a workflow works on just now."""
        self.requests = 0
        self._seen: dict[str, str] = {}
        self._on: set[str] = set()
        self._woken = self._lost = False
        self._node_program = _node_program()
        self._make_agent()
        self.world._point = "case"  # so that the tap sees each call

    # --- asking -------------------------------------------------------------------------------------------------------

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """A request of a person, which has to be taken. Answers its body."""
        handler = apply_handler if path == "/v1/apply" else pools_handler
        self.requests += 1
        event = _event(method, path, body, {"roles": ROLES}, f"case-{self.requests}")
        if method == "PATCH":
            version = self._answer(pools_handler, _event("GET", path, None, {"roles": ROLES}, "look"))[1]["version"]
            event["headers"] |= {"content-type": "application/merge-patch+json", "if-match": f'"{version}"'}
        status, answer = self._answer(handler, event)
        if status >= 300:
            raise ValueError(f"{method} {path}: {status} {answer}")
        return answer

    def claims(self) -> list[NodeClaim]:
        """All claims that there are."""
        return list(every(self.services.store, NodeClaim))

    @property
    def services(self) -> Any:
        """Services of the product's operations."""
        return wiring.services(TENANT)

    def _answer(self, handler: ModuleType, event: Mapping[str, Any]) -> tuple[int, Any]:
        answer = handler.lambda_handler(event, Context(handler.__name__, "request"))
        return int(answer["statusCode"]), json.loads(answer["body"] or "null")

    # --- time ---------------------------------------------------------------------------------------------------------

    def second(self) -> None:
        """One second passes."""
        self.clock.advance(1)
        while (following := self.time._heap) and following[0][0] <= self.clock.now():
            _, _, action = self.time.pop() or (None, "", lambda: None)
            action()
        self._relay()
        self._passes()
        self._machines()
        self.plane.work()
        self._work_agent()

    def _relay(self) -> None:
        store = self.services.store
        for item in list(every(store, Outbox)):
            store.commit(Remove(Outbox, item.id))
            for kind, message in item.messages:
                if kind == "workflow":
                    self.time.start(str(message["workflow"]), item.id, message["input"])
                    continue
                detail_type, detail = message["detail_type"], message["detail"]
                self.events.append((detail_type, detail))
                self._woken = self._woken or _is_wanted("Autoscaler", detail_type, detail)
                self._lost = self._lost or _is_wanted("Reaper", detail_type, detail)

    def _invoke(self, function: str, payload: Any) -> Invocation:
        self.at_work = str(payload.get("claim_id", ""))
        try:
            step = act(walk.RUNNERS[function], self.services, payload)
        except StockyardError as error:
            return failure(getattr(error, "workflow_name", type(error).__name__), str(error))
        wait = min(step.wait, LONGEST_WAIT) if isinstance(step.wait, int) else step.wait
        return Invocation(json.dumps({**step.answer, "wait": wait}).encode())

    def _passes(self) -> None:
        now = self.clock.now()
        if any(claim.due_at and claim.due_at == claim.updated_at for claim in self.claims()):
            passes.scheduler().overdue(now + timedelta(milliseconds=1))
        self._look()
        if self._woken:
            self._woken = False
            passes.autoscaler().woken(TENANT, self.cluster.id)
        if self._lost:
            self._lost = False
            passes.reap().look_at_nodes(TENANT, self.cluster.id)
        if now.second == TICK:
            # No function is invoked here: the schedule makes each cluster's pass itself.
            replace(passes.autoscaler(), hand_out=None).due(now)
            passes.scheduler().overdue(now)
            replace(passes.disruptor(), hand_out=None).due(now)
            if now.minute % SWEEPS == 0:
                self.world.reap()

    def _look(self) -> None:
        for claim in self.claims():
            self.made.add(claim.id)
            # A launch may make another one of its options of it, and says so elsewhere.
            scheduled = next(
                (each for each in claim.conditions if each.type == SCHEDULED and each.status == "True"), None
            )
            if scheduled is not None:
                self.placed[claim.id] = scheduled.message.removeprefix("Placed on ").rstrip(".").partition(".")[2]

    # --- machines -----------------------------------------------------------------------------------------------------

    def _machines(self) -> None:
        """Boot what is new, and let the kubelets of machines that are gone fall silent."""
        for reservation in list(ec2_backends[TENANT_ACCOUNT][REGION].reservations.values()):
            for instance in reservation.instances:
                claim = _tags(instance).get(TAG, "")
                if not claim or claim.startswith(ids.CLUSTER):
                    continue
                if instance.id not in self._seen and instance.state == "running":
                    self._seen[instance.id] = claim
                    self._on.add(instance.id)
                    self.time.later(BOOT_SECONDS, lambda instance=instance: self._join(instance))
                elif instance.id in self._on and instance.state in TERMINATED:
                    self._on.discard(instance.id)
                    self._fall_silent(claim)

    def _fall_silent(self, claim: str) -> None:
        for name, node in self.plane.nodes().items():
            if node["metadata"]["labels"]["stockyard.dev/claim"] == claim:
                self.plane.set_condition(name, "Ready", "Unknown")

    def _join(self, instance: Any) -> None:
        """The machine proves itself, asks how to join, and its kubelet registers as it is told."""
        claim = self._seen[instance.id]
        if instance.id not in self._on:
            return
        number, roles = TENANT_ACCOUNT, (f"{self._prefix}-node-role", f"{self._prefix}-ctrl-role")
        url = f"{_PASS}{instance.id}"
        self.attestor.identities[url] = MachineIdentity(number, roles[0], instance.id)
        proof = {"method": "GET", "url": url, "headers": {}, "cluster_id": self.cluster.id}
        event = _event("POST", f"/v1/node-claims/{claim}/join", proof, {}, "machine")
        status, answer = self._answer(machines_handler, event)
        if status != 200 or not self._registered(answer, instance):
            self.time.later(RETRY_SECONDS, lambda: self._join(instance))

    @property
    def _prefix(self) -> str:
        return f"vantage-{self.cluster.client_id}"

    def _registered(self, answer: Any, instance: Any) -> bool:
        kubelet = _kubelet(instance)
        configuration = self._node_program.kubeadm(answer, kubelet.provider_id)
        wish = Registration.read(configuration)
        document = kubelet.node(wish.name, wish.labels, wish.taints, wish.pods, wish.reserved)
        document["metadata"]["labels"]["kubernetes.io/hostname"] = wish.name
        try:
            request = self.plane.api.request_certificate(answer["token"], CertificateRequest(wish.name))
            self.agent.look()
            return self.plane.api.register(request, document) is not None
        except StatusError:
            return False

    # --- the agent ----------------------------------------------------------------------------------------------------

    def _make_agent(self) -> None:
        self.account = self.plane.api.issue(NAMESPACE, NAME)
        self.logs: list[str] = []
        kube = Kubernetes(KUBE, self._exchange, lambda: self.account)
        common: dict[str, Any] = {"now": self.clock.now, "jitter": lambda: 0.5, "log": self.logs.append}
        self.mirror = Mirror(kube, self._stockyard(), jitter=lambda: 0.5, log=self.logs.append)
        inbox = CommandInbox(kube, now=self.clock.now, monotonic=self._monotonic, log=self.logs.append)
        approvals = Approvals(kube, now=self.clock.now, log=self.logs.append, own_hosts=frozenset({"10.96.0.1"}))
        self.agent = Agent(
            kube,
            self._stockyard(),
            inbox,
            approvals,
            authority=lambda: "PEM",
            pin=lambda _: "sha256:" + "ab" * 32,
            mirror=self.mirror.hear,
            **common,
        )
        self.reports = PodReports(
            kube, self._stockyard(), monotonic=self._monotonic, waiting=self.agent.come_soon, **common
        )
        self.agent.attach(self.reports)
        self._round_in = self._step_in = self._mirror_in = 0.0

    def _stockyard(self) -> StockyardApi:
        return StockyardApi(
            api_url=API,
            cluster_id=self.cluster.id,
            token_url=TOKEN_URL,
            exchange=self._exchange,
            credentials=lambda: ("the-client", "secret"),
            monotonic=self._monotonic,
        )

    def _monotonic(self) -> float:
        return (self.clock.now() - self.begin).total_seconds() + 1000

    def _work_agent(self) -> None:
        """Do the work of the agent's three threads within a second."""
        self._step_in -= 1
        if self._step_in <= 0:
            self._step_in = self.reports.step()
        self._round_in = min(self._round_in, SOON_SECONDS if self.agent._soon else self._round_in) - LOOK_SECONDS
        if self._round_in <= 0:
            self.agent.look()
            self._round_in = self.agent.round()
        self._mirror_in -= 1
        if self._mirror_in <= 0:
            self._mirror_in = self.mirror.step()

    def _exchange(self, request: HttpRequest) -> HttpResponse:
        """A request of the agent, to the cluster's API or to ours."""
        parts = urlsplit(request.url)
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        headers = {name.lower(): value for name, value in request.headers.items()}
        if request.url.startswith(KUBE):
            status, answer = self.plane.api.request(request.method, target, headers, request.body or b"")
        elif request.url.startswith(TOKEN_URL):
            status, answer = 200, {"access_token": "token", "expires_in": 3600}
        else:
            event = _event(request.method, parts.path, None, {"azp": self.cluster.client_id, "roles": ()}, "agent")
            event["headers"] |= {"content-type": headers.get("content-type", "application/json")}
            event["body"], event["isBase64Encoded"] = base64.b64encode(request.body or b"").decode(), True
            event["rawQueryString"] = parts.query
            status, answer = self._answer(machines_handler, event)
        return HttpResponse(status, {}, (answer if isinstance(answer, str) else json.dumps(answer)).encode())


@cache
def _rules() -> tuple[tuple[str, Mapping[str, Any]], ...]:
    """The patterns of the stage's bus, each with the function that it wakes."""
    resources = json.loads(TEMPLATE.read_text(encoding="utf-8"))["Resources"].values()
    rules = [each["Properties"] for each in resources if each["Type"] == "AWS::Events::Rule"]
    return tuple(
        (target["Arn"]["Fn::GetAtt"][0], rule["EventPattern"])
        for rule in rules
        if "EventPattern" in rule
        for target in rule["Targets"]
    )


def _is_wanted(function: str, detail_type: str, detail: Any) -> bool:
    event = {"source": "stockyard", "detail-type": detail_type, "detail": detail}
    return any(name.startswith(f"Functions{function}") and matches(pattern, event) for name, pattern in _rules())


def _node_program() -> Any:
    """The program of a node's machine."""
    folder = Path(machines.__file__).parent / "on_machine"
    with patch.object(sys, "path", [str(folder), *sys.path]):
        specification = importlib.util.spec_from_file_location("stockyard_node_of_cases", folder / "stockyard_node.py")
        assert specification is not None
        assert specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(module)
    return module
