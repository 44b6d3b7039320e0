"""Carries out one run of OpenTofu: fetches what to do, does it, tells what is printed, and how it ends.

The environment gives ``STOCKYARD_RUN_URL``, ``STOCKYARD_RUN_TOKEN``, ``STOCKYARD_RUN_ATTEMPT`` and ``STOCKYARD_TOFU``,
the path of the program. OpenTofu gets none of these. Its state is at the URL, sealed by a key of its own.
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
from .template import cloned, has_backend, unpacked
from .tofu import COMMANDS, Tofu, environment_of, succeed


def main(environ: dict[str, str]) -> int:
    """Carry out the run of the environment. 0 when its end was told, however it ended."""
    api = Api(environ["STOCKYARD_RUN_URL"], environ["STOCKYARD_RUN_TOKEN"], int(environ["STOCKYARD_RUN_ATTEMPT"]))
    try:
        task = api.call("begin", {})
    except Refused as refusal:
        # another start of the same attempt has begun it, or the attempt is over
        return 0 if refusal.status == 409 else 1
    except RunError:
        return 1
    log = Log(api, [api.token, str(task["passphrase"]), *task.get("secrets", ())])
    result: dict[str, Any] = {"end": "done", "error": None}
    with tempfile.TemporaryDirectory(prefix="stockyard-run-") as name:
        try:
            result |= carry_out(task, api, log, Path(name), environ)
        except RunError as error:
            result |= {"end": error.end, "error": str(error)}
        except Exception as error:  # the end is told whatever happens
            result |= {"end": "failed", "error": f"The run's program failed ({type(error).__name__})."}
    log.close()
    try:
        api.call("end", result)
    except (Refused, RunError):
        return 1
    return 0


def carry_out(task: dict[str, Any], api: Api, log: Log, room: Path, environ: dict[str, str]) -> dict[str, Any]:
    """Do what the task says; what its end is told with. ``RunError`` for a run that failed."""
    from_git = task.get("git")
    folder = cloned(from_git, room, log) if from_git else unpacked(task["files"], room / "template")
    own_backend = has_backend(folder)
    environment = environment_of(task, api, room, environ, own_backend=own_backend)
    if not own_backend:
        backend: dict[str, Any] = {"terraform": {"backend": {"http": {}}}}
        (folder / "stockyard_backend_override.tf.json").write_text(json.dumps(backend))
    (room / "variables.tfvars.json").write_text(json.dumps(task["variables"]))
    deadline = time.monotonic() + float(task["timeout_seconds"])
    tofu = Tofu(environ["STOCKYARD_TOFU"], folder, environment, log, deadline)
    succeed(tofu, "init", "-input=false", "-no-color")
    if task.get("unlock"):
        # the attempt before died with it; one that has ended by now is no fault
        tofu.run("force-unlock", "-force", str(task["unlock"]))
    return COMMANDS[task["command"]](tofu, f"-var-file={room / 'variables.tfvars.json'}", log)


if __name__ == "__main__":
    sys.exit(main(dict(os.environ)))
