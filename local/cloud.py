"""The local cloud, put together: the only module that knows all its parts."""

from __future__ import annotations

import json
import math
import os
import shutil
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

from local.assembly import assembled
from local.authority import Authority, trusted
from local.aws.accounts import ACME_ACCOUNT, GLOBEX_ACCOUNT, OWN_ACCOUNT, REGION
from local.aws.corrections.compute.balancers import addressed_balancers
from local.aws.corrections.eks.things import played_control_planes
from local.aws.corrections.roles import service_session
from local.aws.server import Aws, running_aws
from local.bcm.served import ServedHeadNode
from local.builds.processes import local_builds
from local.children import WARDEN
from local.cudo.served import ServedCudo
from local.deployment import Deployment, ResourceFactory, deploy, pseudo_parameters
from local.fault_plan import FaultPlan
from local.functions.apart import Apart
from local.functions.authorizer import JwtAuthorizer, Refused
from local.functions.console import Console
from local.functions.events import Asynchronous, Rules, StreamReader
from local.functions.gateway import Bucket, Gateway
from local.functions.processes import Definition, Functions
from local.home import PROCESSES, StartError, port_error, publish, take, tidy
from local.identity.codes import CONSOLE_CLIENT
from local.identity.keycloak import KeycloakServer, Unavailable
from local.identity.people import LOCAL_ROLES as ROLES
from local.identity.server import IdentityServer
from local.kubernetes.clusters import Clusters
from local.kubernetes.managed import ManagedClusters, SimulatedManagedCluster
from local.kubernetes.real.build import minors, missing, missing_previous
from local.kubernetes.real.cluster import RealCluster
from local.kubernetes.real.control_plane import own_address
from local.kubernetes.real.managed import RealManagedCluster
from local.machines.instances import Machines
from local.machines.metal_hosts import MetalHosts
from local.machines.simulated_nodes import SimulatedNodes
from local.machines.vdeployer import VDeployer
from local.machines.virtual_machines import VirtualMachines
from local.proxies import LOOPBACK
from local.seeds import seed_event_accounts, seed_tenant
from local.sites import LocalSite

ROOT = Path(__file__).resolve().parents[1]
WARM = "local.functions.warm_imports"
PATH = (ROOT, ROOT / "layers" / "common" / "python")
"""Where functions find their modules."""
SCALE = 0.02
"""A minute of waiting takes 1.2 seconds."""
WAITS = 8
"""Requests that may wait for news at a time."""
WORKERS = {"scheduler": 16, **dict.fromkeys(("records", "clusters", "node_claims", "pools"), WAITS + 4)}
"""Processes that a function may have where four are too few: schedulers meet each other, who waits holds one."""
SCALED = {
    "VISIBILITY": 60, "WORKER": 120, "REFUSAL": 180, "ZONE_WAIT": 300, "UNHEALTHY_MEMBER": 600, "AGENT_BUSY": 10,
    "AGENT_QUIET": 60, "AGENT_IDLE": 60, "SITE_IDLE": 60,
}  # fmt: skip
"""Seconds of settings, before they are scaled. Agents keep real time, so they are told to come soon."""
SERVICE_CLIENT = "stockyard-service"
"""The one whose token vdeployers accept; it has no audience, so the authorizer looks at ``client_id``."""


class LocalCloud:
    """``start`` brings everything up, ``close`` takes everything down; usable as a context manager.

    ``home`` keeps logs and ``env``, ``cache`` the template. ``schedules`` may be switched off for tests that
    drive them themselves. ``keycloak`` runs a real Keycloak in place of the stand-in, ``kubernetes`` a real control
    plane for each cluster; ``plan`` says what is to go wrong. Without ``limits`` the gateway takes any rate. With
    ``site`` there is one of that name, with a host that only its connector reaches.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        home: Path = ROOT / ".local",
        cache: Path = ROOT / ".local" / "cache",
        scale: float = SCALE,
        schedules: bool = True,
        keycloak: bool = False,
        kubernetes: bool = False,
        plan: FaultPlan | None = None,
        limits: bool = True,
        apart: Apart | None = None,
        site: str | None = None,
        say: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self.home = home = home.resolve()  # machines run in folders of their own
        self._cache, self._port, self._scale = cache, port, scale
        self._schedules, self._limits, self._kubernetes = schedules, limits, kubernetes
        self._plan = plan or FaultPlan()
        self._trust: dict[str, str] = {}
        self._site = site
        self._holds_home, self._say = False, say
        self._stack = ExitStack()
        self._stop = threading.Event()
        self._rules = Rules((), lambda _function, _event: None)
        self.functions = Functions(ROOT, home / "logs", warm=(WARM,), path=PATH, apart=apart, most=self._plan.functions)
        self.identity: IdentityServer | KeycloakServer = KeycloakServer() if keycloak else IdentityServer()
        self.aws: Aws
        self.gateway: Gateway
        self.cudo: ServedCudo
        self.vdeployer: VDeployer
        self.clusters: Clusters
        self.machines: Machines
        self.virtual_machines: VirtualMachines
        self.environment: dict[str, str] = {}

    def __enter__(self) -> LocalCloud:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        """URL of the API."""
        return self.gateway.url

    def start(self) -> None:
        """Start all parts and write ``env`` when requests are answered. Raises ``StartError``."""
        began = time.monotonic()
        if self._kubernetes and (reason := missing() or missing_previous()):
            raise StartError(f"Kubernetes: {reason}")
        self._take_home()
        self._stack.callback(self.functions.close)
        self.functions.start()
        self._say("reading the template")
        assembly = assembled(ROOT, self._cache)
        self.aws = self._stack.enter_context(self._running_aws())
        self._start_identity()
        address = own_address if self._kubernetes else None
        self.cudo = self._stack.enter_context(closing(ServedCudo(self.home, self._plan.cudo, address)))
        self.head_node = self._stack.enter_context(closing(ServedHeadNode(self.home / "head-node")))
        self.vdeployer = self._stack.enter_context(closing(VDeployer(self._service_token)))
        try:
            simulated = None if self._kubernetes else "kubernetes"
            self.gateway = Gateway(self.functions, self._port, simulated=simulated)
        except OSError as error:
            raise port_error(self._port, error) from None
        self._stack.callback(self.gateway.close)
        self._stack.callback(self.functions.close)
        own = self.aws.keys(OWN_ACCOUNT)
        self._say("making the resources of the template")
        deployment = self._deploy(assembly, own)
        self._seed_secrets(own)
        self._define(deployment)
        self._listen(deployment)
        self._start_machines(self.home / "logs")
        if self._limits and deployment.throttle:
            buckets = {key: Bucket(*throttle) for key, throttle in deployment.route_throttles.items()}
            self.gateway.serve(deployment.routes, Bucket(*deployment.throttle), buckets)
        else:
            self.gateway.serve(deployment.routes)
        self.identity.console_at(self.gateway.url)
        self.gateway.console = Console(ROOT / "console", self.identity.issuer, CONSOLE_CLIENT)
        self._say("registering the tenant's account")
        self._write_environment()
        self._seed_tenant()
        seed_event_accounts(self.call, self.environment["STOCKYARD_TOKEN_PLATFORM"])
        if self._site is not None:
            self._say(f"making the site {self._site}")
            trust = self._trust if self._kubernetes else None
            site = LocalSite(self.call, self._site, self.home / "site", trust, self.clusters)
            self._stack.enter_context(closing(site)).start()
        self._publish()
        self._say(f"ready after {time.monotonic() - began:.1f} s")

    def close(self) -> None:
        """Stop all parts; no process is left. A second call does nothing."""
        self._stop.set()
        if self._holds_home:
            # first of all: whoever sees the file can use it
            (self.home / "env").unlink(missing_ok=True)
        self._stack.close()
        if self._holds_home:
            WARDEN.close()
            self._holds_home = False

    # --- parts -------------------------------------------------------------------------------------------------------

    def _heard(self, bus: str, envelope: Mapping[str, Any]) -> None:
        self._rules.heard(bus, envelope)

    def _take_home(self) -> None:
        """Hold the home until the end; end and remove what is left there, and list what this one starts."""
        self._stack.enter_context(take(self.home))
        tidy(self.home)
        WARDEN.record(self.home / PROCESSES)
        self._holds_home = True

    def _running_aws(self) -> AbstractContextManager[Aws]:
        # what records calls reads the whole stream and all executions afterwards
        forgets = not os.environ.get("STOCKYARD_RECORD_CALLS")
        record = None if forgets else self.home / "asked.jsonl"
        return running_aws(self.functions, self._heard, self._scale, self._plan, forgets=forgets, record=record)

    def _start_identity(self) -> None:
        self._stack.callback(self.identity.stop)
        self._say("starting the identity server")
        authority = None
        if self._kubernetes:
            # A real API server asks the issuer by TLS alone.
            authority = Authority(self.home / "pki", "stockyard-local")
            self._trust = self._stack.enter_context(trusted(authority))
        try:
            self.identity.start(authority=authority)
        except Unavailable as reason:
            raise StartError(f"Keycloak: {reason}") from None

    def _start_machines(self, logs: Path) -> None:
        self.clusters = Clusters(logs / "agents.log")
        self._stack.enter_context(local_builds(self.home / "builds", self._trust))
        self._stack.enter_context(addressed_balancers(own_address))  # where a cluster's API listens
        if self._kubernetes:
            planes = self.home / "planes"
            # After the clusters have ended, which have their state in it.
            self._stack.callback(partial(shutil.rmtree, planes, ignore_errors=True))
            kinds = (RealCluster.initialized, RealCluster.restored)
            initialize, restore = (partial(kind, environment=self._trust, planes=planes) for kind in kinds)
            self.clusters = Clusters(logs / "agents.log", initialize, restore)
        self._stack.callback(self.clusters.close)
        self.clusters.start()
        where = (logs / "machines.log", self.home / "machines", self.clusters, self._plan.machines)
        make = partial(RealManagedCluster, environment=self._trust) if self._kubernetes else SimulatedManagedCluster
        managed = ManagedClusters(self.clusters, self.home / "managed", logs / "agents.log", self.aws.url, make)
        self._stack.enter_context(played_control_planes(managed))
        accounts = (ACME_ACCOUNT, GLOBEX_ACCOUNT, *self._plan.variants)
        self.machines = Machines(accounts, *where, managed, self.aws.url)
        self.virtual_machines = VirtualMachines(lambda: self.cudo.started, *where)
        hosts = MetalHosts(self.head_node.head_node, *where)
        for watch in (self.machines, self.virtual_machines, hosts, SimulatedNodes(self.clusters)):
            self._stack.callback(watch.close)
            watch.start()

    def _service_token(self, header: str) -> bool:
        try:
            JwtAuthorizer(self.identity.issuer, (SERVICE_CLIENT,)).claims(header)
        except Refused:
            return False
        return True

    def _deploy(self, assembly: Path, own: Mapping[str, str]) -> Deployment:
        clients: dict[str, Any] = {}

        def client(service: str) -> Any:
            if service not in clients:
                clients[service] = self.aws.client(service, own)
            return clients[service]

        issuer = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))["context"]["stages"]["dev"]["issuer"]
        factory = ResourceFactory(client, assembly, self.gateway.url, OWN_ACCOUNT, REGION)
        # The issuer has a free port, and the template is cached: so its text is replaced.
        return deploy(factory, assembly, pseudo_parameters(OWN_ACCOUNT, REGION), {issuer: self.identity.issuer})

    def _seed_secrets(self, own: Mapping[str, str]) -> None:
        """Store the secrets that the operator fills in before the first deploy."""
        value = {"client_id": self.identity.admin_client_id, "client_secret": self.identity.admin_client_secret}
        secrets = self.aws.client("secretsmanager", own)
        secrets.create_secret(Name="stockyard/dev/identity-admin", SecretString=json.dumps(value))

    def _define(self, deployment: Deployment) -> None:
        """Define the functions with the environment of the template and what only this place can know."""
        path, recording = list(PATH), {}
        waits = (self._plan.functions or 5 * WAITS) // 5
        if os.environ.get("STOCKYARD_RECORD_CALLS"):
            path.insert(0, ROOT / "local" / "recorder")
            recording = {"STOCKYARD_CALLS": str(self.home / "calls.jsonl")}
        here = {
            **recording,
            **self._trust,
            "PYTHONPATH": os.pathsep.join(map(str, path)),
            "PYTHONDONTWRITEBYTECODE": "",
            "AWS_ENDPOINT_URL": self.aws.url,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "POWERTOOLS_TRACE_DISABLED": "true",
            "STOCKYARD_TENANT_WAITS": str(waits),
            "STOCKYARD_WAITS": str(waits),
            **({} if self._limits else {"STOCKYARD_TENANT_RATE_LIMIT": "0"}),
            # Clusters that name no minor get the older one of those that are built, which has an upgrade here.
            **({"STOCKYARD_KUBERNETES_VERSION": minors()[0]} if self._kubernetes else {}),
            "STOCKYARD_VDEPLOYER_URL_TEMPLATE": self.vdeployer.url_template,
            **dict(self.cudo.of_functions, **self.head_node.of_functions),
            "STOCKYARD_OFFERS_TRIALS": "true",
            **{f"STOCKYARD_{name}_SECONDS": str(math.ceil(n * self._scale)) for name, n in SCALED.items()},
        }
        for name, function in deployment.functions.items():
            keys = service_session(deployment.roles[name], "lambda.amazonaws.com", name, REGION)
            environment = {
                **function.environment,
                **here,
                "AWS_ACCESS_KEY_ID": keys["AccessKeyId"],
                "AWS_SECRET_ACCESS_KEY": keys["SecretAccessKey"],
                "AWS_SESSION_TOKEN": keys["Token"],
            }
            workers = WORKERS.get(function.handler.split(".")[1], 4)
            limits = (function.timeout, function.memory, workers)
            self.functions.define(Definition(name, function.handler, function.arn, environment, *limits))

    def _listen(self, deployment: Deployment) -> None:
        own = self.aws.keys(OWN_ACCOUNT, "events")
        queues = self.aws.client("sqs", own)

        def send(queue: str, text: str) -> None:
            url = queues.get_queue_url(QueueName=queue.rsplit(":", 1)[-1])["QueueUrl"]
            queues.send_message(QueueUrl=url, MessageBody=text)

        later = Asynchronous(self.functions, send, deployment.invoke_configs, self._stop, self._scale)
        self._stack.callback(later.close)
        # before it: what still runs would be waited for, as long as a function may take
        self._stack.callback(self.functions.close)
        self._stack.callback(self._stop.set)
        self._rules = Rules(deployment.rules, later.submit)
        for mapping in deployment.mappings:
            read = self.aws.stream(OWN_ACCOUNT, mapping.source)
            reader = StreamReader(mapping, read, self.functions, send, self._stop, self._scale)
            self._thread(reader.run, f"stream of {mapping.function}")
        if self._schedules:
            # Schedules keep real time: an idle laptop is not to be kept busy.
            self._thread(lambda: self._rules.run_schedules(self._stop, 1.0), "schedules")

    def _thread(self, target: Callable[[], None], name: str) -> None:
        thread = threading.Thread(target=target, daemon=True, name=name)
        thread.start()
        self._stack.callback(thread.join, 5)
        self._stack.callback(self._stop.set)

    # --- seeds -------------------------------------------------------------------------------------------------------

    def _write_environment(self) -> None:
        token, person = self.identity.token, self.identity.sign_in("acme", ROLES)
        self.environment = {
            "STOCKYARD_URL": self.url,
            "STOCKYARD_TOKEN": str(person["access_token"]),
            "STOCKYARD_TOKEN_ID": str(person["id_token"]),
            "STOCKYARD_TOKEN_VIEWER": token("acme", ROLES[:1], subject="local-viewer"),
            "STOCKYARD_TOKEN_OPERATOR": token("acme", ROLES[:2], subject="local-operator"),
            "STOCKYARD_TOKEN_OTHER": token("globex", ROLES, subject="local-other"),
            "STOCKYARD_TOKEN_PLATFORM": token("platform", ("stockyard-platform",), subject="local-platform"),
            **dict(self.cudo.of_people, **self.head_node.of_people),
            "AWS_ENDPOINT_URL": self.aws.url,
            **self.aws.keys(ACME_ACCOUNT),
            "AWS_DEFAULT_REGION": REGION,
            "NO_PROXY": os.environ.get("NO_PROXY") or ",".join(LOOPBACK),
        }
        if self._trust:  # kubectl lets the command line renew its login
            self.environment["SSL_CERT_FILE"] = self._trust["SSL_CERT_FILE"]
        if isinstance(self.identity, KeycloakServer):
            self._say("a login to a cluster is confirmed as local-user, with STOCKYARD_PASSWORD of the file env")
            self.environment["STOCKYARD_PASSWORD"] = self.identity.password

    def _seed_tenant(self) -> None:
        client = partial(self.aws.client, keys=self.environment)
        verified = seed_tenant(self.call, client, self._plan.account)
        if verified.get("verification", verified.get("status")) not in {"verified", None}:
            raise StartError(f"the tenant's account is not verified: {json.dumps(verified)}")

    def call(
        self, method: str, path: str, body: Any = None, token: str = "", headers: Mapping[str, str] | None = None
    ) -> Any:
        """One call of the API as the tenant's administrator. Raises ``StartError`` for anything but 2xx."""
        headers = {"Authorization": f"Bearer {token or self.environment['STOCKYARD_TOKEN']}", **(headers or {})}
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            text = error.read().decode(errors="replace")[:2000]
            raise StartError(f"{method} {path}: {error.code} {text}\n(logs: {self.home / 'logs'})") from None

    def _publish(self) -> None:
        """Write ``env`` in one step: whoever sees it can use it."""
        self.call("GET", "/v1/health")
        self.aws.began.set()
        publish(self.home, self.environment)
