"""The agent as a container runs it: the code of the rendered manifest, in a process, over loopback connections."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agent import manifest
from agent.stockyard_agent.authority import pin
from tests.unit.agent.http_platform import HttpPlatform
from tests.unit.agent.rig import CLUSTER, SECRET, TOKEN, Rig
from tests.unit.agent.test_transport import identity


@dataclass
class Container:
    """The process, with the environment of the Deployment."""

    rig: Rig
    environment: dict[str, str]
    process: subprocess.Popen[str] | None = None

    def start(self, **more: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-W", "error", "-m", "stockyard_agent"]
        environment = {**self.environment, **more}
        self.process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, cwd="/")
        return self.process

    def until(self, reached: Callable[[], Any]) -> None:
        end = time.monotonic() + 60
        while not reached():
            self.rig.platform.heard.clear()
            assert self.process is not None
            assert self.process.poll() is None, self.process.communicate()[1]
            assert time.monotonic() < end, self.rig.platform.posts[-1:]
            self.rig.platform.heard.wait(1)

    def end(self, number: int = signal.SIGTERM) -> tuple[int, float, str]:
        """Exit code, seconds until it came, and the log."""
        assert self.process is not None
        started = time.monotonic()
        self.process.send_signal(number)
        _, log = self.process.communicate(timeout=20)
        return self.process.returncode, time.monotonic() - started, log


@pytest.fixture
def container(tmp_path: Path) -> Iterator[Container]:
    rig = Rig()
    rig.kube.now = rig.kube.store.now = lambda: datetime.now(UTC)
    rig.platform.interval = 0
    platform = HttpPlatform(rig.platform)
    kube_url = rig.kube.serve(identity(tmp_path, "ca"))
    documents = manifest.documents(manifest.Settings(platform.url, CLUSTER, f"{platform.url}/realms/s/token"))
    code = tmp_path / "code" / "stockyard_agent"
    texts = next(item for item in documents if item["kind"] == "ConfigMap")["data"]
    pod = next(item for item in documents if item["kind"] == "Deployment")["spec"]["template"]["spec"]
    for item in pod["volumes"][0]["configMap"]["items"]:
        path = code / item["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(texts[item["key"]])
    for name, text in {"client_id": "the-client", "client_secret": SECRET, "token": rig.account}.items():
        (tmp_path / name).write_text(text + "\n")
    environment = {variable["name"]: variable.get("value", "own") for variable in pod["containers"][0]["env"]}
    environment |= {
        "PYTHONPATH": str(code.parent),
        "STOCKYARD_CLIENT_DIR": str(tmp_path),
        "STOCKYARD_ACCOUNT_DIR": str(tmp_path),
        "STOCKYARD_KUBERNETES_URL": kube_url,
    }
    started = Container(rig, environment)
    yield started
    if started.process is not None and started.process.poll() is None:
        started.process.kill()
        started.process.communicate()
    platform.close()
    rig.kube.close()


def test_process_executes_commands_over_network(container: Container, tmp_path: Path) -> None:
    rig = container.rig
    rig.add_node("a")
    rig.add_pod("db", "a", labels={"app": "db"})
    budget = rig.add_budget("db", {"app": "db"}, 1)
    rig.add_waiting("web-1")
    order = {"token": TOKEN, "expires_at": "2100-01-01T00:00:00Z", "claim": "ncl_1", "node": "worker-1"}
    rig.platform.order("t", "bootstrap_token", **order)
    rig.platform.order("d", "drain", node="a", grace_seconds=0)
    container.start()
    container.until(lambda: rig.platform.posts and "d" in rig.platform.results)
    assert "held back" in rig.platform.results["d"]["message"]
    rig.kube.store.get(budget)["spec"]["minAvailable"] = 0
    container.until(lambda: not rig.platform.commands)
    assert {name: result["status"] for name, result in rig.platform.results_by_id.items()} == {
        "cmd_t": "done",
        "cmd_d": "done",
    }
    assert rig.pods("a") == []
    # Pods are told by a thread of their own, whatever the rounds do.
    container.until(lambda: rig.platform.pods.pending == [(1, ["web/web-1"])])
    rig.add_waiting("web-2")
    container.until(lambda: rig.platform.pods.pending == [(2, ["web/web-1", "web/web-2"])])
    assert rig.token_secret() is not None
    assert rig.platform.posts[0]["ca_hash"] == pin((tmp_path / "ca.crt").read_text())
    code, seconds, log = container.end()
    assert code == 0
    assert seconds < 1
    assert "cmd_d done" in log
    assert log.endswith("ends as told\n")
    for secret in (SECRET, rig.account, TOKEN, *rig.platform.tokens):
        assert secret not in log


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_process_ends_within_a_second_during_pending_request(container: Container, number: int) -> None:
    hangs, request_arrived, answer = threading.Event(), threading.Event(), container.rig.platform.answer

    def hang(*arguments: Any) -> Any:
        request_arrived.set()
        hangs.wait(30)
        return answer(*arguments)

    container.rig.platform.answer = hang
    container.start()
    assert request_arrived.wait(30)
    code, seconds, _ = container.end(number)
    hangs.set()
    assert code == 0
    assert seconds < 1


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"STOCKYARD_CLUSTER_ID": ""}, "STOCKYARD_CLUSTER_ID"),
        ({"STOCKYARD_API_URL": "http://api.example.test"}, "no https:// URL"),
        ({"STOCKYARD_ACCOUNT_DIR": "/nowhere"}, "cannot start"),
    ],
)
def test_process_names_missing_setting(container: Container, more: dict[str, str], named: str) -> None:
    process = container.start(**more)
    _, log = process.communicate(timeout=30)
    assert process.returncode == 1
    assert named in log
