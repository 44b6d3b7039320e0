"""The calls of CodeBuild and of CloudWatch Logs on the logs of builds, as AWS's checks."""

from __future__ import annotations

from collections.abc import Iterator

from local.aws.permissions.account import Account
from local.aws.permissions.calls import Call
from local.aws.permissions.policies import Ask, Context

OVERRIDES = {
    "buildspecOverride": "source.buildspec",
    "computeTypeOverride": "environment.computeType",
    "environmentTypeOverride": "environment.type",
    "imageOverride": "environment.image",
    "privilegedModeOverride": "environment.privilegedMode",
    "serviceRoleOverride": "serviceRole",
}
"""Parameter of a start -> the condition key that is there with it."""


def projects(call: Call, _account: Account) -> Iterator[Ask]:
    """The checks of a call on projects, or on builds: those are their project's."""
    parameters = call.parameters
    named = parameters.get("ids") or parameters.get("names") or [parameters.get("projectName") or parameters.get("id")]
    context: Context = {
        f"codebuild:{key}": str(parameters[name]) for name, key in OVERRIDES.items() if parameters.get(name) is not None
    }
    for name in sorted({str(each).partition(":")[0] for each in named}):
        yield Ask(call.action, call.arn(f"project/{name}"), context)


def streams(call: Call, _account: Account) -> Iterator[Ask]:
    """The check of a call on a stream of a log."""
    group, stream = call.parameters["logGroupName"], call.parameters["logStreamName"]
    yield Ask(call.action, call.arn(f"log-group:{group}:log-stream:{stream}"))
