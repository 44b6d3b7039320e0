"""CodeBuild: builds are carried out, take their time, and end as their commands do.

moto answers every build with success, forgets what a call overrides, takes no token, and refuses projects without a
source.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol
from unittest.mock import patch

from moto.codebuild import responses
from moto.codebuild.exceptions import InvalidInputException, ResourceNotFoundException
from moto.codebuild.models import CodeBuildBackend
from moto.codebuild.responses import CodeBuildResponse
from moto.core.exceptions import JsonRESTError
from moto.core.responses import ActionResult
from moto.logs.models import logs_backends
from moto.secretsmanager.exceptions import SecretNotFoundException
from moto.secretsmanager.models import secretsmanager_backends

from local.aws.corrections.eks.things import Document

MOST_CHARACTERS, MOST_OF_A_VARIABLE = 25_600, 4096
TOKEN_SECONDS = 300
AT_ONCE, QUEUED = 4, 20
"""Builds of an account that run at once, and that wait."""
TIMED_OUT = 124
_OVERRIDES = (
    "buildspecOverride",
    "environmentVariablesOverride",
    "projectName",
    "queuedTimeoutInMinutesOverride",
    "timeoutInMinutesOverride",
)


class Carried(Protocol):
    """A build that is carried out."""

    def poll(self) -> int | None:
        """Exit code; None while it runs."""

    def printed(self) -> Sequence[str]:
        """Lines so far."""

    def stop(self) -> None:
        """End it."""


class Player(Protocol):
    """Builds that are carried out, see ``local.builds.processes``."""

    def start(self, name: str, buildspec: str, variables: Mapping[str, str], seconds: float) -> Carried:
        """Start one that may take so long."""


@dataclass
class Build:
    """A build. ``document`` is what the API tells of it."""

    document: Document
    token: tuple[str, Mapping[str, Any]] | None
    variables: dict[str, str]
    process: Carried | None = None
    secrets: tuple[str, ...] = ()
    """Values of Secrets Manager, which the log hides."""
    lines_sent: int = 0
    """Lines that are in the log."""

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return bool(self.document["buildStatus"] == "IN_PROGRESS")

    def phase(self, name: str, status: str | None = None, message: str = "") -> None:
        """Go on to a phase; the one before ends so."""
        now = datetime.now(UTC)
        phases = self.document["phases"]
        if phases:
            phases[-1] |= {"endTime": now, "phaseStatus": status or "SUCCEEDED"}
            phases[-1] |= (
                {"contexts": [{"statusCode": "COMMAND_EXECUTION_ERROR", "message": message}]} if message else {}
            )
        phases.append({"phaseType": name, "startTime": now})
        self.document["currentPhase"] = name

    def end(self, status: str, message: str = "") -> None:
        """End it."""
        self.phase("COMPLETED", status, message)
        self.document |= {"buildStatus": status, "buildComplete": True, "endTime": datetime.now(UTC)}


class LimitExceeded(JsonRESTError):  # type: ignore[misc]
    """The account has as many builds as it may."""

    code = 400

    def __init__(self, most: int) -> None:
        text = f"Cannot have more than {most} builds in queue for the account"
        super().__init__("AccountLimitExceededException", text)


@dataclass
class Builds:
    """Builds of all accounts."""

    player: Player
    at_once: int = AT_ONCE
    queued: int = QUEUED
    _builds: dict[tuple[str, str], dict[str, Build]] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def start(self, backend: Any, parameters: Mapping[str, Any]) -> Document:
        """Start one, or find the one with its token."""
        with self._lock:
            return self._start(backend, parameters)

    def _start(self, backend: Any, parameters: Mapping[str, Any]) -> Document:
        here = self._of(backend)
        project = backend.codebuild_projects.get(parameters["projectName"])
        if project is None:
            raise ResourceNotFoundException(
                f"Project cannot be found: arn:aws:codebuild:{backend.region_name}:{backend.account_id}:project/"
                f"{parameters['projectName']}"
            )
        overrides = {name: parameters.get(name) for name in _OVERRIDES}
        _check(overrides)
        earlier = self._with_token(here, parameters.get("idempotencyToken"), overrides)
        if earlier is not None:
            return earlier.document
        self.settle(backend)
        if sum(build.runs for build in here.values()) >= self.at_once + self.queued:
            raise LimitExceeded(self.queued)
        build = _new(backend, project, parameters, overrides)
        here[build.document["id"]] = build
        return build.document

    def settle(self, backend: Any) -> None:
        """Start what has room, tell what was printed, and end what has ended."""
        here = self._of(backend)
        for build in list(here.values()):
            if build.runs and build.process is not None:
                self._look(backend, build, build.process)
        running = sum(build.runs and build.process is not None for build in here.values())
        for build in list(here.values()):
            if build.runs and build.process is None and running < self.at_once:
                running += 1
                minutes = build.document["timeoutInMinutes"]
                name = build.document["id"].rpartition(":")[2]
                build.phase("BUILD")
                specification = build.document["source"]["buildspec"]
                build.process = self.player.start(name, specification, build.variables, minutes * 60)

    def builds_of(self, backend: Any, names: Sequence[str]) -> list[Document]:
        """The builds of these names that there are."""
        with self._lock:
            self.settle(backend)
            here = self._of(backend)
            return [here[name].document for name in names if name in here]

    def stop(self, backend: Any, name: str) -> Document:
        """Stop one."""
        with self._lock:
            build = self._of(backend).get(name)
            if build is None:
                raise ResourceNotFoundException(f"Build {name} does not exist")
            if build.runs:
                if build.process is not None:
                    build.process.stop()
                    self._tell(backend, build, build.process)
                build.end("STOPPED")
            return build.document

    def forget_tokens(self) -> None:
        """Let no start be one that was before."""
        for here in self._builds.values():
            for build in here.values():
                build.token = None

    def end_at_limit(self) -> None:
        """End what runs, as at the end of its time."""
        with self._lock:
            for here in self._builds.values():
                for build in here.values():
                    if build.runs and build.process is not None:
                        build.process.stop()
                        build.end("TIMED_OUT")

    def forget(self, name: str) -> None:
        """Delete a build, as its account's owner may."""
        for here in self._builds.values():
            build = here.pop(name, None)
            if build is not None and build.process is not None:
                build.process.stop()

    def _of(self, backend: Any) -> dict[str, Build]:
        return self._builds.setdefault((backend.account_id, backend.region_name), {})

    def _with_token(self, here: Mapping[str, Build], token: str | None, overrides: Mapping[str, Any]) -> Build | None:
        earliest = datetime.now(UTC) - timedelta(seconds=TOKEN_SECONDS)
        for build in here.values():
            if token and build.token and build.token[0] == token and build.document["startTime"] > earliest:
                if build.token[1] != overrides:
                    raise InvalidInputException(f"Idempotency token {token} was used with other parameters")
                return build
        return None

    def _look(self, backend: Any, build: Build, process: Carried) -> None:
        code = process.poll()
        self._tell(backend, build, process)
        if code is not None:
            status = {0: "SUCCEEDED", TIMED_OUT: "TIMED_OUT"}.get(code, "FAILED")
            text = f"Error while executing command: sh commands.sh. Reason: exit status {code}"
            build.end(status, text if status == "FAILED" else "")
            self._write(backend, build, [f"[Container] Phase complete: BUILD State: {status}"])

    def _tell(self, backend: Any, build: Build, process: Carried) -> None:
        """Put new lines into the log, as CodeBuild does while it runs."""
        lines = list(process.printed())
        fresh, build.lines_sent = lines[build.lines_sent :], len(lines)
        for secret in build.secrets:
            fresh = [line.replace(secret, "***") for line in fresh]
        self._write(backend, build, fresh)

    def _write(self, backend: Any, build: Build, lines: Sequence[str]) -> None:
        location = build.document["logs"]
        logs = logs_backends[backend.account_id][backend.region_name]
        if location["groupName"] not in logs.groups:
            logs.create_log_group(location["groupName"], {})
        if location["streamName"] not in logs.groups[location["groupName"]].streams:
            logs.create_log_stream(location["groupName"], location["streamName"])
        if lines:
            now = int(datetime.now(UTC).timestamp() * 1000)
            events = [{"timestamp": now, "message": f"{line}\n"} for line in lines]
            logs.put_log_events(location["groupName"], location["streamName"], events)


def _check(overrides: Mapping[str, Any]) -> None:
    """Refuse what CodeBuild refuses."""
    if len(overrides["buildspecOverride"] or "") > MOST_CHARACTERS:
        raise InvalidInputException(f"Max buildspec length is {MOST_CHARACTERS}")
    if any(len(each["value"]) > MOST_OF_A_VARIABLE for each in overrides["environmentVariablesOverride"] or ()):
        raise InvalidInputException(f"EnvironmentVariable should be at most {MOST_OF_A_VARIABLE} characters")
    for name, most in (("timeoutInMinutesOverride", 2160), ("queuedTimeoutInMinutesOverride", 480)):
        if overrides[name] is not None and not 5 <= overrides[name] <= most:
            raise InvalidInputException(f"Invalid {name}: value must be between 5 and {most}")


def _new(backend: Any, project: Any, parameters: Mapping[str, Any], overrides: Mapping[str, Any]) -> Build:
    own = project.project_metadata
    name = f"{own['name']}:{uuid.uuid4()}"
    variables = {each["name"]: each for each in own["environment"].get("environmentVariables") or ()}
    variables |= {each["name"]: each for each in overrides["environmentVariablesOverride"] or ()}
    group = (own.get("logsConfig") or {}).get("cloudWatchLogs", {}).get("groupName")
    document = {
        "id": name,
        "arn": f"arn:aws:codebuild:{backend.region_name}:{backend.account_id}:build/{name}",
        "startTime": datetime.now(UTC),
        "buildStatus": "IN_PROGRESS",
        "buildComplete": False,
        "projectName": own["name"],
        "phases": [],
        "source": {"type": "NO_SOURCE", "buildspec": overrides["buildspecOverride"] or own["source"].get("buildspec")},
        "environment": {**own["environment"], "environmentVariables": list(variables.values())},
        "serviceRole": own["serviceRole"],
        "logs": {"groupName": group or f"/aws/codebuild/{own['name']}", "streamName": name.rpartition(":")[2]},
        "timeoutInMinutes": overrides["timeoutInMinutesOverride"] or own["timeoutInMinutes"] or 60,
        "queuedTimeoutInMinutes": overrides["queuedTimeoutInMinutesOverride"] or 480,
    }
    token = parameters.get("idempotencyToken")
    plain = {each["name"]: each["value"] for each in variables.values() if each.get("type") in (None, "PLAINTEXT")}
    stored = {each["name"]: each["value"] for each in variables.values() if each.get("type") == "SECRETS_MANAGER"}
    region = backend.region_name
    own_variables = {"AWS_REGION": region, "AWS_DEFAULT_REGION": region, "CODEBUILD_BUILD_ID": name}
    build = Build(document, (token, dict(overrides)) if token else None, own_variables | plain)
    build.phase("SUBMITTED")
    build.phase("QUEUED")
    try:
        secrets = {variable: _secret(backend, secret) for variable, secret in stored.items()}
    except SecretNotFoundException:
        build.end("FAILED", "Secrets Manager Error Message: Secrets Manager can't find the specified secret.")
        return build
    build.variables |= secrets
    build.secrets = tuple(filter(None, secrets.values()))
    return build


def _secret(backend: Any, name: str) -> str:
    """Value of a secret of the account, or of one field of it after a colon."""
    name, _, part = name.partition(":")
    answer = secretsmanager_backends[backend.account_id][backend.region_name].get_secret_value(name, "", "")
    value = str(answer["SecretString"])
    return str(json.loads(value)[part]) if part else value


@contextmanager
def played_builds(builds: Builds) -> Iterator[Builds]:
    """Inside this context builds are carried out."""
    source = responses._validate_required_params_source

    def parameters(response: Any) -> dict[str, Any]:
        return {name: response._get_param(name) for name in (*_OVERRIDES, "idempotencyToken")}

    def start(response: Any) -> ActionResult:
        return ActionResult({"build": builds.start(response.codebuild_backend, parameters(response))})

    def get(response: Any) -> ActionResult:
        names = response._get_param("ids")
        documents = builds.builds_of(response.codebuild_backend, names)
        ids = {document["id"] for document in documents}
        return ActionResult({"builds": documents, "buildsNotFound": [name for name in names if name not in ids]})

    def stop(response: Any) -> ActionResult:
        return ActionResult({"build": builds.stop(response.codebuild_backend, response._get_param("id"))})

    def checked_source(own_source: Mapping[str, Any]) -> None:
        if own_source["type"] != "NO_SOURCE":
            source(own_source)

    def delete(backend: Any, name: str) -> None:
        backend.codebuild_projects.pop(name, None)

    with ExitStack() as stack:
        stack.enter_context(patch.object(CodeBuildResponse, "start_build", start))
        stack.enter_context(patch.object(CodeBuildResponse, "batch_get_builds", get))
        stack.enter_context(patch.object(CodeBuildResponse, "stop_build", stop))
        stack.enter_context(patch.object(CodeBuildBackend, "delete_project", delete))
        stack.enter_context(patch.object(responses, "_validate_required_params_source", checked_source))
        yield builds
