"""People at the clusters of a served local cloud with real control planes: their ``stockyard`` and ``kubectl``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from local.aws.accounts import ACME_ACCOUNT
from local.kubernetes.real.control_plane import program
from local.testing.example import EXAMPLE
from tests.harness.stories.pools import PODS, Story

if TYPE_CHECKING:
    from local.testing.serving import Served

Object = dict[str, Any]
PROGRAM_SECONDS = 90
MINUTE = 60.0
MEMBER = "node-role.kubernetes.io/control-plane"


@dataclass(frozen=True)
class Person:
    """Person who made the clusters. Files of the programs are in ``folder``."""

    served: Served
    folder: Path

    def tries(self, *command: str, text: str = "", editor: str = "") -> subprocess.CompletedProcess[str]:
        """Run ``stockyard`` or ``kubectl``; ``text`` is its input, ``editor`` what it opens files with."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{program('kubectl').parent}{os.pathsep}{os.defpath}"
        own = {"PATH": path, "HOME": str(self.folder), "KUBECONFIG": str(self.folder / "config")}
        own |= {"TMPDIR": str(self.folder), "KUBE_EDITOR": editor}
        environment = {**self.served.environment, **own, "PYTHONPATH": str(EXAMPLE.parents[1] / "client")}
        return subprocess.run(
            command, env=environment, input=text, capture_output=True, text=True, check=False, timeout=PROGRAM_SECONDS
        )

    def runs(self, *command: str, text: str = "") -> str:
        """Run the program, and return its output. Raises ``AssertionError`` with its complaint when it fails."""
        done = self.tries(*command, text=text)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def log_in(self, cluster: str) -> None:
        """Get a kubeconfig and the login that ``kubectl`` asks for tokens: nobody sits there to confirm another."""
        self.runs("stockyard", "cluster", "kubeconfig", cluster)
        self.runs("stockyard", "login", "--cluster", cluster)


@dataclass
class Day(Story):
    """One cluster on a person's day. What the person does is done with ``kubectl``; who looks on is the
    administrator."""

    person: Person = field(kw_only=True)

    # --- what the person does ----------------------------------------------------------------------------------------

    def tries(self, *arguments: str, text: str = "", editor: str = "") -> subprocess.CompletedProcess[str]:
        """Run ``kubectl`` in this cluster."""
        command = ("kubectl", "--context", str(self.cluster["name"]), *arguments)
        return self.person.tries(*command, text=text, editor=editor)

    def kubectl(self, *arguments: str, text: str = "") -> str:
        """Run ``kubectl``, and return its output. Raises ``AssertionError`` when it fails."""
        done = self.tries(*arguments, text=text)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def make(self, *documents: Object) -> None:
        """Create objects, with one call."""
        self.kubectl("create", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))

    def scale(self, replicas: int, *names: str) -> None:
        """Change how many pods Deployments have."""
        self.kubectl("scale", f"--replicas={replicas}", *(f"deployment/{name}" for name in names))

    def open_pools(self, *documents: Object) -> str:
        """Make NodePools with the command line; what it says."""
        name = str(self.cluster["name"])
        done = self.person.tries("stockyard", "apply", "--cluster", name, "-f", "-", text=json.dumps(documents))
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def save(self, *, paused: bool = False) -> None:
        """Let nodes leave for their price, or not."""
        self.good("PUT", f"clusters/{self.cluster['id']}/disruption", {"paused": paused})

    def saved(self, subject: str, look: Callable[[], Any]) -> Any:
        """The first true value of ``look``, while the schedule of every minute comes at once. Raises ``TimeoutError``
        after five minutes."""

        def looked() -> Any:
            self.served.aws("lambda").invoke(FunctionName="stockyard-dev-disruptor", Payload=b"{}")
            return look()

        return self.served.wait(subject, looked, 5 * MINUTE)

    # --- what is seen ------------------------------------------------------------------------------------------------

    def run(self, **counts: int) -> None:
        """Wait until so many pods of each application run, and no others of it are there. Raises ``TimeoutError`` after
        a minute."""
        for app, count in counts.items():
            self.served.wait(f"{count} pods of {app}", partial(self.all_run, app, count), MINUTE)

    def pods(self, app: str) -> list[Object]:
        """The pods of an application that do not end."""
        items = self.kube.call("GET", PODS)["items"]
        alive = [item for item in items if "deletionTimestamp" not in item["metadata"]]
        return [item for item in alive if item["metadata"].get("labels", {}).get("app") == app]

    def where(self, app: str) -> list[str]:
        """The nodes of these pods; empty for one that waits."""
        return sorted(pod["spec"].get("nodeName", "") for pod in self.pods(app))

    def nominated(self, app: str) -> list[str]:
        """The nodes that the scheduler has promised to pods of an application that are not bound."""
        return [name for pod in self.pods(app) if (name := pod["status"].get("nominatedNodeName"))]

    def members(self) -> set[str]:
        """The Nodes of the control plane."""
        items = self.kube.call("GET", "/api/v1/nodes")["items"]
        return {item["metadata"]["name"] for item in items if MEMBER in item["metadata"]["labels"]}

    def ids(self, pool: str) -> set[str]:
        """The claims of a pool."""
        return {claim["id"] for claim in self.claims(pool)}

    def are_available(self, pool: str) -> bool:
        """Whether all claims of a pool are nodes."""
        return all(claim["phase"] == "Available" for claim in self.claims(pool))

    def claim_is_gone(self, claim_id: str) -> bool:
        """Whether a claim is no more."""
        return self.served.call("GET", f"/v1/node-claims/{claim_id}").status == 404

    def messages(self, subject: str, reason: str) -> list[str]:
        """The messages of events with a reason."""
        return [event["message"] for event in self.events(subject) if event["reason"] == reason]

    def seconds(self, subject: str, reason: str, since: datetime) -> float:
        """From a moment until an event with a reason. Raises ``AssertionError`` when there was none."""
        events = self.events(subject)
        time = next((event["time"] for event in events if event["reason"] == reason), None)
        assert time is not None, (reason, [(event["time"], event["reason"], event["message"]) for event in events])
        return round((datetime.fromisoformat(time) - since).total_seconds(), 1)

    def decided(self) -> str:
        """The subject of the events about decisions."""
        return f"disruption/{self.cluster['id']}"

    def launched(self, claim: Object) -> str:
        """The type of the instance that a claim has in EC2."""
        ec2 = self.served.aws("ec2", ACME_ACCOUNT)
        (reservation,) = ec2.describe_instances(InstanceIds=[claim["machine_id"]])["Reservations"]
        return str(reservation["Instances"][0]["InstanceType"])

    def agent(self) -> int:
        """The process id of the cluster's agent."""
        mark = f"KUBERNETES_SERVICE_HOST={self.kube.address.partition(':')[0]}\0".encode()
        for path in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if b"stockyard_agent" in (path / "cmdline").read_bytes() and mark in (path / "environ").read_bytes():
                    return int(path.name)
        raise AssertionError("no agent runs")
