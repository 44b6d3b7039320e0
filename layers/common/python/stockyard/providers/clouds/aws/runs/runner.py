"""``ports.runs.Runner``: each run is a build of the project that the tenant's template for runs has made."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from stockyard.errors import (
    NotYetVisible,
    PermissionDenied,
    VendorNotFound,
    VendorQuotaExceeded,
    VendorRefused,
    VendorThrottled,
)
from stockyard.ports.runs import RunnerAccount, RunnerState, RunStart
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.runs import names
from stockyard.providers.clouds.aws.runs.buildspec import Release, buildspec
from stockyard.providers.clouds.aws.sessions import Sessions

FEWEST_MINUTES, MOST_MINUTES = 5, 2160
"""Limits of CodeBuild for a build's own time-out."""
QUEUE_MINUTES = 60
"""How long a build may wait for a machine."""
LAST_LINES = 100
MOST_TEXT, MOST_OF_LINE = 300, 1000
"""Characters of a reason, and of a line."""
OF_CODEBUILD = "[Container] "
"""Beginning of CodeBuild's own lines, which repeat whole commands, and of which its phases say the rest."""
_WAITING = frozenset({"SUBMITTED", "QUEUED", "PROVISIONING"})
_ENDS: Mapping[str, str | None] = {
    "SUCCEEDED": None,
    "STOPPED": "The build was stopped.",
    "TIMED_OUT": "CodeBuild ended the build at its time limit, or it waited too long for a machine.",
    "FAULT": "CodeBuild had a fault.",
}
_SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|KEY|CREDENTIAL")
"""Names of variables whose values no line may show."""
_HIDDEN = "(hidden)"


USD_A_MINUTE = 0.0034
"""A build minute of ``arm1.small`` on EC2 in us-east-1, on demand, beyond the free ones: https://aws.amazon.com/codebuild/pricing/
as of November 2026. Other regions differ by little."""


class CodeBuildRunner:
    """Builds in tenants' accounts. ``prefix`` is the stage's prefix of names; ``release`` says where OpenTofu is."""

    usd_a_minute = USD_A_MINUTE

    def __init__(self, sessions: Sessions, prefix: str, release: Release | None = None) -> None:
        self._sessions, self._prefix, self._release = sessions, prefix, release or Release()

    def start(self, target: RunnerAccount, start: RunStart) -> str:
        """See ``ports.runs.Runner.start``. For five minutes CodeBuild answers a second start with the same build."""
        plain = [{"name": name, "value": value, "type": "PLAINTEXT"} for name, value in start.variables.items()]
        secret = [
            {"name": name, "value": value, "type": "SECRETS_MANAGER"} for name, value in start.secret_variables.items()
        ]
        with self._explained(target), _mismatch_is_earlier():
            answer = self._calls(target).call(
                "codebuild",
                "start_build",
                projectName=names.project_name(target.account, self._prefix),
                buildspecOverride=buildspec(start.program, self._release),
                environmentVariablesOverride=[*plain, *secret],
                idempotencyToken=start.id,
                timeoutInMinutesOverride=min(MOST_MINUTES, max(FEWEST_MINUTES, math.ceil(start.limit_seconds / 60))),
                queuedTimeoutInMinutesOverride=QUEUE_MINUTES,
            )
        return str(answer["build"]["id"])

    def state(self, target: RunnerAccount, vendor_id: str) -> RunnerState:
        """See ``ports.runs.Runner.state``."""
        build = self._build(target, vendor_id)
        if build is None:
            return RunnerState("ended", "CodeBuild does not know the build any more.")
        status = str(build["buildStatus"])
        if status == "IN_PROGRESS":
            waits = str(build.get("currentPhase", "QUEUED")) in _WAITING
            return RunnerState("queued" if waits else "running")
        return RunnerState("ended", _ENDS[status] if status in _ENDS else _failure(build))

    def log(self, target: RunnerAccount, vendor_id: str) -> Sequence[str]:
        """See ``ports.runs.Runner.log``: what CodeBuild says of its phases, and what the build printed last. Values of
        variables that are secrets are hidden."""
        build = self._build(target, vendor_id)
        if build is None:
            return ()
        lines = [*_contexts(build), *self._printed(target, build)]
        variables = build.get("environment", {}).get("environmentVariables", ())
        # those of type SECRETS_MANAGER CodeBuild hides itself, and tells their names in target of their values
        plain = [each for each in variables if each.get("type", "PLAINTEXT") == "PLAINTEXT"]
        secrets = [str(each["value"]) for each in plain if _SECRET.search(str(each["name"]).upper())]
        for secret in sorted(filter(None, secrets), key=len, reverse=True):
            lines = [line.replace(secret, _HIDDEN) for line in lines]
        return lines[-LAST_LINES:]

    def stop(self, target: RunnerAccount, vendor_id: str) -> None:
        """See ``ports.runs.Runner.stop``."""
        if self.state(target, vendor_id).phase == "ended":
            return
        try:
            with self._explained(target):
                self._calls(target).call("codebuild", "stop_build", id=vendor_id)
        except VendorNotFound:
            return
        except VendorRefused:
            # it has ended meanwhile
            if self.state(target, vendor_id).phase != "ended":
                raise

    # --- parts -------------------------------------------------------------------------------------------------------

    def _calls(self, target: RunnerAccount) -> Calls:
        policy = session_policy(target, self._prefix)
        return Calls(self._sessions.of(target.account, target.session, target.tenant, policy), target.region)

    def _build(self, target: RunnerAccount, vendor_id: str) -> Mapping[str, Any] | None:
        """The build; None for one that is not known, or of another project."""
        if vendor_id.partition(":")[0] != names.project_name(target.account, self._prefix):
            return None
        with self._explained(target):
            builds = self._calls(target).call("codebuild", "batch_get_builds", ids=[vendor_id])["builds"]
        return next(iter(builds), None)

    def _printed(self, target: RunnerAccount, build: Mapping[str, Any]) -> list[str]:
        """Last lines of the build's log. A project may keep none, and a template's owner may take the right away."""
        stream = build.get("logs", {}).get("streamName")
        if not stream:
            return []
        group = names.log_group(target.account, self._prefix)
        try:
            answer = self._calls(target).call(
                "logs",
                "get_log_events",
                logGroupName=group,
                logStreamName=stream,
                limit=LAST_LINES,
                startFromHead=False,
            )
        except (PermissionDenied, VendorNotFound):
            return []
        lines = [str(event["message"]).rstrip("\n")[:MOST_OF_LINE] for event in answer["events"]]
        return [line for line in lines if not line.startswith(OF_CODEBUILD)]

    @contextmanager
    def _explained(self, target: RunnerAccount) -> Iterator[None]:
        """Say which template is missing, and wait where the account has no room for one more build."""
        project = names.project_name(target.account, self._prefix)
        hint = (
            f"Deploy the cloud account's template for runs in {target.region}: `stockyard account template"
            f" {target.account.id} --runs`."
        )
        try:
            yield
        except VendorQuotaExceeded as error:
            raise VendorThrottled(
                f"The account has as many builds at once as its quota of CodeBuild allows: {error.detail}",
                code=error.code,
                hint="It is tried again; ask AWS to raise the quota of concurrent builds of small ARM machines.",
            ) from error
        except PermissionDenied as error:
            raise PermissionDenied(
                f"The project {project} for runs cannot be used: {error.detail}", code=error.code, hint=hint
            ) from error
        except VendorNotFound as error:
            if "project" not in error.detail.lower():
                raise
            raise PermissionDenied(
                f"The account has no project {project} for runs in {target.region}.", code=error.code, hint=hint
            ) from error


@contextmanager
def _mismatch_is_earlier() -> Iterator[None]:
    """Take the refusal of a token that came with other values before: then a start of an earlier release was answered
    to nobody, and the token is free again five minutes later."""
    try:
        yield
    except VendorRefused as error:
        text = error.detail.lower()
        if not ("token" in text or "mismatch" in text):
            raise
        raise NotYetVisible(error.detail, code=error.code) from error


def session_policy(target: RunnerAccount, prefix: str) -> str:
    """Policy of a session that is good for the runs of the account alone."""
    where = target.account, prefix, target.region
    builds = ["codebuild:BatchGetBuilds", "codebuild:StartBuild", "codebuild:StopBuild"]
    statements = [
        {"Effect": "Allow", "Action": builds, "Resource": names.project_arn(*where)},
        {"Effect": "Allow", "Action": "logs:GetLogEvents", "Resource": names.log_arn(*where)},
    ]
    return json.dumps({"Version": "2012-10-17", "Statement": statements}, separators=(",", ":"))


def _contexts(build: Mapping[str, Any]) -> list[str]:
    """Texts of CodeBuild about phases that did not succeed."""
    return [
        _short(str(context["message"]))
        for phase in build.get("phases", ())
        for context in phase.get("contexts", ())
        if context.get("message") and phase.get("phaseStatus") != "SUCCEEDED"
    ]


def _failure(build: Mapping[str, Any]) -> str:
    return next(iter(_contexts(build)), "The build failed, and CodeBuild does not say why.")


def _short(text: str) -> str:
    """A text without the command that it repeats."""
    reason = text.rpartition("Reason: ")[2]
    return f"The build failed: {reason.strip()[:MOST_TEXT]}"
