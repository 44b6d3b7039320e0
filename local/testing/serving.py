"""The local cloud in a process of its own, for tests and benchmarks: start it, call it, inspect it, stop it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3

from local.aws.accounts import ACME_ACCOUNT, OWN_ACCOUNT, REGION
from local.children import Warden, start
from local.cloud import ROOT

START_SECONDS = 300.0
STOP_SECONDS = 180.0
DUMP_SECONDS = 5.0
"""Time for the stacks of the threads, and for an end by the other signal."""
JSON = "application/json"
SERVED = Warden()
"""Ends what is served here; a local cloud in this process ends its own children alone."""


class NotServed(Exception):
    """The local cloud did not start. The text is its output."""


class NotStopped(Exception):
    """The local cloud did not end. The text is its state and its output."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def body(self) -> Any:
        """The parsed body; None when it is empty."""
        return json.loads(self.text) if self.text else None


@dataclass(slots=True)
class Served:
    """A running local cloud. ``environment`` has the variables of its ``env`` file."""

    home: Path
    process: subprocess.Popen[bytes]
    environment: dict[str, str] = field(default_factory=dict)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        token: str = "STOCKYARD_TOKEN",  # noqa: S107 - the name of a line of the file
    ) -> Answer:
        """Calls the API. ``token`` is the name of a token in the ``env`` file; any other text is a token itself."""
        bearer = self.environment.get(token, token)
        sent = {"Authorization": f"Bearer {bearer}", **({} if body is None else {"Content-Type": JSON})}
        data = None if body is None else json.dumps(body).encode()
        return http(method, self.environment["STOCKYARD_URL"] + path, data, {**sent, **(headers or {})})

    def change(
        self,
        method: str,
        path: str,
        body: Any,
        *,
        token: str = "STOCKYARD_TOKEN",  # noqa: S107 - the name of a line of the file
        timeout: float = 30,
    ) -> Answer:
        """Changes what is at ``path``, with the tag that a read has just given. When the answer is 412, something else
        has changed it since: it is read and changed again, for ``timeout`` seconds. An answer without a tag is the
        answer."""

        def changed() -> Answer | None:
            current = self.call("GET", path.partition("?")[0], token=token)
            if "etag" not in current.headers:
                return current
            answer = self.call(method, path, body, headers={"If-Match": current.headers["etag"]}, token=token)
            return answer if answer.status != 412 else None

        answer: Answer = self.wait(f"{method} {path}", changed, timeout)
        return answer

    def aws(self, service: str, account: str = OWN_ACCOUNT) -> Any:
        """A boto3 client of Stockyard's own account, or of another account."""
        keys = {"aws_access_key_id": "local", "aws_secret_access_key": "local"}
        if account == ACME_ACCOUNT:
            keys = {
                "aws_access_key_id": self.environment["AWS_ACCESS_KEY_ID"],
                "aws_secret_access_key": self.environment["AWS_SECRET_ACCESS_KEY"],
            }
        session: Any = boto3.Session(region_name=REGION, **keys)  # type: ignore[arg-type]
        client = session.client(service, endpoint_url=self.environment["AWS_ENDPOINT_URL"])

        def choose(request: Any, **_: Any) -> None:
            request.headers["x-moto-account-id"] = account

        client.meta.events.register("before-sign", choose)
        return client

    def wait(self, subject: str, look: Callable[[], Any], timeout: float = 600) -> Any:
        """The first true value of ``look``. Raises ``TimeoutError`` after ``timeout`` seconds."""
        end = time.monotonic() + timeout
        pause = threading.Event()
        while not (value := look()):
            if time.monotonic() > end:
                raise TimeoutError(f"{subject}: not within {timeout} s; logs in {self.home / 'logs'}")
            pause.wait(0.4)
        return value

    def operation(self, id: str) -> dict[str, Any]:
        """Waits until the operation has ended, and returns it."""

        def ended_operation() -> dict[str, Any] | None:
            operation: dict[str, Any] = self.call("GET", f"/v1/operations/{id}").body
            return None if operation["status"] == "running" else operation

        return dict(self.wait(f"operation {id}", ended_operation))

    def identity_clients(self, client_id: str) -> list[dict[str, Any]]:
        """The realm's clients with that client id, from the admin interface."""
        token = self.client_token(*self.identity_admin())
        url = f"{self.issuer.replace('/realms/', '/admin/realms/')}/clients?clientId={urllib.parse.quote(client_id)}"
        clients: list[dict[str, Any]] = http("GET", url, None, {"Authorization": f"Bearer {token}"}).body
        return [client for client in clients if client["clientId"] == client_id]

    def identity_admin(self) -> tuple[str, str]:
        """Id and secret of the client that manages the realm's clients."""
        value = self.aws("secretsmanager").get_secret_value(SecretId="stockyard/dev/identity-admin")["SecretString"]
        admin = json.loads(value)
        return admin["client_id"], admin["client_secret"]

    def client_token(self, client_id: str, client_secret: str) -> str:
        """A token of a client of the realm, as a machine gets it."""
        form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": client_secret}
        data = urllib.parse.urlencode(form).encode()
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        return str(http("POST", f"{self.issuer}/protocol/openid-connect/token", data, headers).body["access_token"])

    @property
    def issuer(self) -> str:
        """The issuer of the tokens."""
        payload = self.environment["STOCKYARD_TOKEN"].split(".")[1]
        return str(json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["iss"])

    @property
    def calls(self) -> list[dict[str, Any]]:
        """Every AWS call of our functions so far."""
        return [json.loads(line) for line in (self.home / "calls.jsonl").read_text(encoding="utf-8").splitlines()]

    def stop(self, timeout: float = STOP_SECONDS) -> int:
        """Stops it as Ctrl-C does, and returns the exit code. What has not ended after ``timeout`` seconds is killed;
        ``NotStopped`` says what each of its threads did."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            state = Path(f"/proc/{self.process.pid}/status")
            signals = [line for line in state.read_text().splitlines() if "Sig" in line] if state.exists() else []
            self.process.send_signal(signal.SIGUSR1)
            self.process.terminate()  # should Ctrl-C have been lost
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(DUMP_SECONDS)
            self.process.kill()
            self.process.wait()
            output = (self.home / "serve.out").read_text(encoding="utf-8", errors="replace")
            raise NotStopped("\n".join((f"not within {timeout} s", *signals, output))) from None


def http(method: str, url: str, data: bytes | None, headers: Mapping[str, str]) -> Answer:
    """One HTTP exchange. Every status is an answer, none raises."""
    request = urllib.request.Request(url, data, dict(headers), method=method)  # noqa: S310 - loopback
    try:
        with urllib.request.urlopen(request, timeout=300) as answer:  # noqa: S310
            return Answer(answer.status, {k.lower(): v for k, v in answer.headers.items()}, answer.read().decode())
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, {k.lower(): v for k, v in error.headers.items()}, error.read().decode())


def serve(home: Path, *options: str) -> Served:
    """Starts ``python -m local serve`` with its own home and these options. Raises ``NotServed``."""
    home.mkdir(parents=True, exist_ok=True)
    path = os.pathsep.join(map(str, (ROOT, ROOT / "layers" / "common" / "python", ROOT / "client")))
    environment = {**os.environ, "PYTHONPATH": path, "STOCKYARD_RECORD_CALLS": "1"}
    output = home / "serve.out"
    with output.open("wb") as file:
        command = [sys.executable, "-m", "local", "serve", "--port", "0", "--home", str(home), *options]
        process = start(command, SERVED, cwd=ROOT, env=environment, stdout=file, stderr=file)
    served = Served(home, process)
    try:
        served.wait("start", lambda: (home / "env").exists() or process.poll() is not None, START_SECONDS)
        if process.poll() is not None:
            raise NotServed(output.read_text(encoding="utf-8"))
    except BaseException:
        served.stop()
        raise
    for line in (home / "env").read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition("=")
        served.environment[name] = value
    return served


def serving(home: Path, *options: str) -> Iterator[Served]:
    """For a fixture: as ``serve``, stopped at the end, which has to go well."""
    cloud = serve(home, *options)
    yield cloud
    if code := cloud.stop():
        raise RuntimeError(f"the local cloud did not stop cleanly: {code}")
