"""Carries out one run of OpenTofu: fetches what to do, does it, tells what is printed, and how it ends.

The environment gives ``STOCKYARD_RUN_URL``, ``STOCKYARD_RUN_TOKEN`` and ``STOCKYARD_TOFU``, the path of the program.
OpenTofu gets none of these. Its state is at the URL, sealed by a key of its own.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from .api import Api, Log, Refused, RunError
from .secrets import secrets_of
from .template import cloned, has_backend, unpacked
from .tofu import COMMANDS, Tofu, apply, environment_of, learn, succeed


def main(environ: dict[str, str]) -> int:
    """Carry out the run of the environment. 0 when its end was told, however it ended."""
    api = Api(environ["STOCKYARD_RUN_URL"], environ["STOCKYARD_RUN_TOKEN"])
    try:
        task = api.call("begin", {})
    except Refused as refusal:
        # another start of the same attempt has begun it, or the attempt is over
        return 0 if refusal.status == 409 else 1
    except RunError:
        return 1
    log = Log(api, [api.token, str(task["passphrase"]), *task.get("secrets", ())])
    end: dict[str, Any] = {"end": "done", "error": None, "is_empty": task["command"] == "destroy", "result": None}
    with tempfile.TemporaryDirectory(prefix="stockyard-run-") as name:
        try:
            secrets = secrets_of(task, environ)
            log.hide(secrets.hidden)
            folder, end["commit"] = template_of(task, Path(name), log, secrets.git)
            task["environment"] = {**task.get("environment", {}), **secrets.variables}
            end["result"] = carry_out(task, api, log, folder, environ)
        except RunError as error:
            end |= {"end": error.end, "error": str(error), "is_empty": error.is_empty}
        except Exception as error:  # the end is told whatever happens
            text = f"The run's program failed ({type(error).__name__})."
            end |= {"end": "failed", "error": text, "is_empty": False}
    log.close()
    try:
        api.call("end", end)
    except (Refused, RunError):
        return 1
    return 0


def template_of(task: dict[str, Any], room: Path, log: Log, credentials: str | None) -> tuple[Path, str | None]:
    """Folder of the template, and the commit that it is of; None where it is of no repository."""
    from_git = task.get("git")
    if from_git:
        return cloned({**from_git, "commit": task.get("commit") or from_git.get("commit")}, room, log, credentials)
    return unpacked(task["files"], room / "template"), None


def carry_out(task: dict[str, Any], api: Api, log: Log, folder: Path, environ: dict[str, str]) -> dict[str, Any]:
    """Do what the task says; what its end is told with. ``RunError`` for a run that failed."""
    with tempfile.TemporaryDirectory(prefix="stockyard-home-") as name:
        room, own_backend = Path(name), has_backend(folder)
        environment = environment_of(task, api, room, environ, own_backend=own_backend)
        if not own_backend:
            backend: dict[str, Any] = {"terraform": {"backend": {"http": {}}}}
            (folder / "stockyard_backend_override.tf.json").write_text(json.dumps(backend))
        (room / "variables.tfvars.json").write_text(json.dumps(task["variables"]))
        deadline = time.monotonic() + float(task["timeout_seconds"])
        tofu = Tofu(environ["STOCKYARD_TOFU"], folder, environment, log, deadline, log.stop)
        succeed(tofu, "init", "-input=false", "-no-color")
        if task.get("unlock"):
            # the run before died with it; one that has ended by now is no fault
            tofu.run("force-unlock", "-force", str(task["unlock"]))
        variables = f"-var-file={room / 'variables.tfvars.json'}"
        if task["command"] == "destroy" and task.get("unsure"):
            learn(tofu, variables, log)
        if task["command"] == "apply" and task.get("keep"):
            return apply(tofu, variables, log, keep=True)
        return COMMANDS[task["command"]](tofu, variables, log)


if __name__ == "__main__":
    sys.exit(main(dict(os.environ)))
