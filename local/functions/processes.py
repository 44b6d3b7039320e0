"""Functions as processes: each worker is ``awslambdaric`` with the function's real environment.

A worker is started when an invocation finds none idle (a cold start), kept warm, and replaced when it crashes or runs
over its time. It is a copy of a process that has imported most of what functions want.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO

from local.functions.apart import CORE, Apart
from local.functions.fork_server import ForkServer
from local.functions.invocation import Invocation, failure
from local.functions.runtime_api import Request, RuntimeApi
from local.functions.workers import Busy, Closed, Workers

ROOT = Path(__file__).resolve().parents[2]
INIT_SECONDS = 30.0
PATIENCE = 120.0
"""Seconds that an invocation waits for a worker: less than any state waits for its task, so that nothing is done for a
caller that has given up."""


@dataclass(frozen=True, slots=True)
class Definition:
    """One function of the template. ``timeout`` is in seconds, ``concurrency`` how many workers may run at once."""

    name: str
    handler: str
    arn: str
    environment: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 3.0
    memory: int = 128
    concurrency: int = 4


@dataclass(slots=True)
class Stats:
    """Measured durations of cold and warm invocations, in seconds."""

    cold: list[float] = field(default_factory=list)
    warm: list[float] = field(default_factory=list)


class Worker:
    """One process of one function."""

    def __init__(
        self, definition: Definition, environment: Mapping[str, str], log: IO[bytes], folder: Path, server: ForkServer
    ) -> None:
        self.definition = definition
        self.api = RuntimeApi()
        self.used = False
        environment = {**environment, "AWS_LAMBDA_RUNTIME_API": self.api.address}
        self._process = server.fork("awslambdaric", definition.handler, environment, folder, log)
        self._watch = threading.Thread(target=self._watch_exit, daemon=True)
        self._watch.start()

    @property
    def alive(self) -> bool:
        return self._process.exit_code is None

    def run(self, payload: bytes) -> Invocation:
        """Run one invocation. A worker that crashed or ran over its time is dead afterwards."""
        if not self.api.ready.wait(INIT_SECONDS):
            self.kill()
            return failure("Sandbox.Timedout", f"Init timed out after {INIT_SECONDS:.2f} seconds")
        if self.api.init_error:
            self.kill()
            return self.api.init_error
        limit = self.definition.timeout
        request = Request(payload, self.definition.arn, time.time() + limit)
        self.api.enqueue(request)
        if not self.alive:
            self.api.abandon(self._exited())
        if not request.done.wait(limit):
            self.kill()
            return failure(
                "Sandbox.Timedout", f"RequestId: {request.id} Error: Task timed out after {limit:.2f} seconds"
            )
        self.used = True
        return request.answer or self._exited()

    def kill(self) -> None:
        """End the process at once and free its port."""
        if self.alive:
            self._process.kill()
        self._process.wait()
        self._watch.join(2)
        self.api.close()

    def _watch_exit(self) -> None:
        self._process.wait()
        self.api.abandon(self._exited())

    def _exited(self) -> Invocation:
        return failure("Runtime.ExitError", f"Error: Runtime exited with code {self._process.exit_code}")


class Functions:
    """All functions; an ``Invoker``. ``folder`` is where their code is, ``logs`` gets one file per function.

    ``warm`` are modules that are imported once for all workers, from ``path`` and what is installed. ``apart`` says who
    has workers and a core of their own; ``most`` how many functions run at a time, as in an account of Lambda.
    """

    def __init__(
        self,
        folder: Path,
        logs: Path,
        base: Mapping[str, str] | None = None,
        *,
        warm: Sequence[str] = (),
        path: Sequence[Path] = (ROOT,),
        apart: Apart | None = None,
        most: int | None = None,
    ) -> None:
        self._apart = apart
        self._slots = threading.BoundedSemaphore(most) if most is not None else None
        self._folder = folder
        self._warm = warm
        self._path = path
        self._server: ForkServer | None = None
        self._lock = threading.Lock()
        self._logs = logs
        self._base = dict(base or {})
        self._files: dict[str, IO[bytes]] = {}
        self._definitions: dict[str, Definition] = {}
        self._workers: dict[tuple[str, int | None], Workers[Worker]] = {}
        """By function, and by the core that they are to stay on."""
        self.stats = Stats()

    def start(self) -> ForkServer:
        """Begin to import; the first worker does it otherwise."""
        with self._lock:
            if self._server is None:
                self._server = ForkServer(self._warm, self._path)
            return self._server

    def define(self, definition: Definition) -> None:
        """Add a function. Nothing is started yet."""
        self._logs.mkdir(parents=True, exist_ok=True)
        self._definitions[definition.name] = definition
        log = (self._logs / f"{definition.name}.log").open("ab", buffering=0)
        self._files[definition.name] = log

        def worker(core: int | None) -> Worker:
            environment = self._environment(definition) | ({} if core is None else {CORE: str(core)})
            return Worker(definition, environment, log, self._folder, self.start())

        for core in (None,) if self._apart is None else (self._apart.core, self._apart.other):
            self._workers[definition.name, core] = Workers(partial(worker, core), definition.concurrency, PATIENCE)

    def names(self) -> list[str]:
        """Names of all functions."""
        return sorted(self._definitions)

    def definition(self, name: str) -> Definition:
        """One function, as it was added. ``KeyError`` for an unknown one."""
        return self._definitions[name]

    def invoke(self, function: str, payload: bytes) -> Invocation:
        """See ``Invoker``. Waits while all workers of the function are busy, or too many functions run; a refusal as
        Lambda's ends a long wait."""
        if self._slots is None:
            return self._invoke(function, payload)
        if not self._slots.acquire(timeout=PATIENCE):
            return failure("Lambda.TooManyRequestsException", "Rate Exceeded.")
        try:
            return self._invoke(function, payload)
        finally:
            self._slots.release()

    def _invoke(self, function: str, payload: bytes) -> Invocation:
        core = None if self._apart is None else self._apart.core_of(function, payload)
        workers = self._workers[function, core]
        try:
            worker = workers.take()
        except Busy:
            return failure("Lambda.TooManyRequestsException", "Rate Exceeded.")
        except Closed:
            return failure("Runtime.ExitError", "the local cloud stops")
        cold, started = not worker.used, time.perf_counter()
        try:
            return worker.run(payload)
        finally:
            (self.stats.cold if cold else self.stats.warm).append(time.perf_counter() - started)
            workers.give_back(worker)

    def close(self) -> None:
        """End every worker."""
        for workers in self._workers.values():
            workers.close()
        with self._lock:
            server, self._server = self._server, None
        if server is not None:
            server.close()
        for file in self._files.values():
            file.close()

    def _environment(self, definition: Definition) -> dict[str, str]:
        """The variables that Lambda sets, then those of the template. No other variables of this process are passed."""
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "LANG": "en_US.UTF-8",
            "TZ": ":UTC",
            **self._base,
            "_HANDLER": definition.handler,
            "LAMBDA_TASK_ROOT": str(self._folder),
            "AWS_EXECUTION_ENV": f"AWS_Lambda_python{sys.version_info.major}.{sys.version_info.minor}",
            "AWS_LAMBDA_FUNCTION_NAME": definition.name,
            "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(definition.memory),
            "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{definition.name}",
            "AWS_LAMBDA_LOG_STREAM_NAME": "local",
            "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
            **definition.environment,
        }
