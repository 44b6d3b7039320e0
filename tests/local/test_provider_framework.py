"""The stand-in for the CDK's provider framework answers as the framework's own code does, which Node runs here."""

from __future__ import annotations

import json
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from local.cloudformation import Provider
from local.cloudformation.framework import CREATE_FAILED
from local.cloudformation.timeline import Timeline
from stacks.node import use_bundled_node

PACKAGE = "package/custom-resources/lib/provider-framework/runtime"
DRIVER = """
const Module = require('module'), load = Module._load;
Module._load = (name, ...rest) => name.startsWith('@aws-sdk/') ? {} : load(name, ...rest);
for (const name of ['USER_ON_EVENT_FUNCTION_ARN', 'USER_IS_COMPLETE_FUNCTION_ARN', 'WAITER_STATE_MACHINE_ARN'])
  process.env[name] = name;
console.log = () => {};
const outbound = require('./outbound'), framework = require('./framework');
const cases = JSON.parse(require('fs').readFileSync(0, 'utf8')), answers = [];
async function play(story) {
  const puts = [], begun = [], invoked = [];
  outbound.httpRequest = async (_options, body) => { puts.push(JSON.parse(body)); };
  outbound.startExecution = async (request) => { begun.push(JSON.parse(request.input)); };
  outbound.invokeFunction = async (request) => {
    const name = request.FunctionName === 'USER_ON_EVENT_FUNCTION_ARN' ? 'onEvent' : 'isComplete';
    invoked.push(name);
    const later = story.isComplete;
    const result = name === 'onEvent' ? story.onEvent : later.length > 1 ? later.shift() : later[0];
    return result && result.error
      ? { FunctionError: 'Unhandled', Payload: JSON.stringify({ errorMessage: result.error }) }
      : { Payload: JSON.stringify(result) };
  };
  await framework.onEvent(story.event);
  for (const input of begun) {
    let error = null;
    for (let attempt = 0; attempt < story.attempts; attempt++) {
      try { error = null; await framework.isComplete(input); } catch (e) { error = e; }
      if (error === null) break;
    }
    if (error !== null)
      await framework.onTimeout({ Cause: JSON.stringify({ errorMessage: error.message }) });
  }
  return { puts, invoked };
}
(async () => {
  for (const story of cases) answers.push(await play(story));
  process.stdout.write(JSON.stringify(answers));
})();
"""


def event(kind: str, physical_id: str | None = None) -> dict[str, Any]:
    more = {} if physical_id is None else {"PhysicalResourceId": physical_id}
    return {
        "RequestType": kind,
        "StackId": "stack",
        "RequestId": "request-1",
        "LogicalResourceId": "Thing",
        "ResponseURL": "https://example.com/answer?signature",
        "ResourceProperties": {"Name": "a"},
        **more,
    }


DONE, NOT_YET = {"IsComplete": True}, {"IsComplete": False}
NAMED = {"PhysicalResourceId": "a-1"}
STORIES: dict[str, dict[str, Any]] = {
    "created": {"event": event("Create"), "onEvent": {**NAMED, "Data": {"A": 1}}, "isComplete": [NOT_YET, DONE]},
    "with data of both": {"event": event("Create"), "onEvent": {**NAMED, "Data": {"A": 1, "B": 1}},
                          "isComplete": [{**DONE, "Data": {"B": 2}}]},
    "without an id": {"event": event("Create"), "onEvent": {}, "isComplete": [DONE]},
    "replaced": {"event": event("Update", "a-0"), "onEvent": NAMED, "isComplete": [DONE]},
    "updated": {"event": event("Update", "a-0"), "onEvent": None, "isComplete": [DONE]},
    "deleted": {"event": event("Delete", "a-0"), "onEvent": {}, "isComplete": [DONE]},
    "deleted as another": {"event": event("Delete", "a-0"), "onEvent": NAMED, "isComplete": [DONE]},
    "failed at once": {"event": event("Create"), "onEvent": {"error": "no room"}, "isComplete": [DONE]},
    "an update that failed": {"event": event("Update", "a-0"), "onEvent": {"error": "no room"}, "isComplete": [DONE]},
    "a deletion after that": {"event": event("Delete", CREATE_FAILED), "onEvent": {}, "isComplete": [DONE]},
    "failed later": {"event": event("Create"), "onEvent": NAMED, "isComplete": [NOT_YET, {"error": "no room"}]},
    "a replacement that failed": {"event": event("Update", "a-0"), "onEvent": NAMED, "isComplete": [{"error": "no"}]},
    "data too early": {"event": event("Create"), "onEvent": NAMED, "isComplete": [{**NOT_YET, "Data": {"A": 1}}]},
    "endless": {"event": event("Create"), "onEvent": NAMED, "isComplete": [NOT_YET]},
}  # fmt: skip
ATTEMPTS = 4


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The answers of the framework's own code to each story."""
    import aws_cdk

    folder = tmp_path_factory.mktemp("framework")
    (archive,) = (Path(aws_cdk.__file__).parent / "_jsii").glob("aws-cdk-lib@*.tgz")
    with tarfile.open(archive) as package:
        for member in package:
            if member.name.startswith(f"{PACKAGE}/") and member.name.endswith(".js"):
                content = package.extractfile(member)
                assert content is not None
                (folder / Path(member.name).name).write_bytes(content.read())
    (folder / "driver.js").write_text(DRIVER)
    stories = json.dumps([{**story, "attempts": ATTEMPTS} for story in STORIES.values()])
    command = [use_bundled_node(), "driver.js"]
    run = subprocess.run(command, cwd=folder, input=stories, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2_000:]
    return dict(zip(STORIES, json.loads(run.stdout), strict=True))


def stand_in(story: dict[str, Any]) -> dict[str, Any]:
    """The answers of the stand-in."""
    remaining = list(story["isComplete"])

    def result_of(result: Any) -> Any:
        if result and result.get("error"):
            raise RuntimeError(result["error"])
        return result

    def is_complete(_event: dict[str, Any]) -> Any:
        return result_of(remaining.pop(0) if len(remaining) > 1 else remaining[0])

    puts: list[dict[str, Any]] = []
    timeline = Timeline()
    provider = Provider(lambda _: result_of(story["onEvent"]), is_complete, timeline, 10.0, 10.0 * ATTEMPTS)
    provider.deliver(story["event"], lambda content: puts.append(json.loads(content)))
    timeline.run(lambda: False, 3_600)
    return {"puts": puts, "invoked": [name for name, _ in provider.invocations]}


@pytest.mark.parametrize("name", STORIES)
def test_the_stand_in_answers_as_the_framework_does(name: str, real: dict[str, dict[str, Any]]) -> None:
    def plain(answers: dict[str, Any]) -> Any:
        puts = [{**put, "Reason": first_line(put["Reason"]), "Data": put.get("Data") or {}} for put in answers["puts"]]
        return puts, answers["invoked"]

    assert plain(stand_in(STORIES[name])) == plain(real[name])


def first_line(reason: str) -> str:
    return reason.splitlines()[0].removeprefix("Error: ")
