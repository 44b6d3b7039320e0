"""OpenTofu as a process: its commands, its time-out, and its environment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .api import Api, Log, RunError
from .template import INHERITED

END_SECONDS = 600
"""How long OpenTofu may take to end after it was interrupted: it writes its state then."""
LOOK_SECONDS = 0.5
"""Between two looks whether the run is still needed."""
OF_ROLE = ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_DEFAULT_REGION", "AWS_REGION")
"""Variables of a machine by which OpenTofu has the rights of its role."""


class Tofu:
    """OpenTofu in the folder of the template, with an environment and a home of its own."""

    def __init__(
        self,
        program: str,
        folder: Path,
        environment: dict[str, str],
        log: Log,
        deadline: float,
        stop: threading.Event | None = None,
    ) -> None:
        """``stop`` is set when nobody needs the run any more; None: it goes on to its end all the same."""
        self._program, self._folder, self._environment, self._log = program, folder, environment, log
        self._deadline, self._stop = deadline, stop or threading.Event()

    def run(self, *arguments: str, quiet: bool = False) -> tuple[int, list[str]]:
        """Exit code and printed lines. ``quiet`` keeps the lines out of the log.

        At the deadline, or when nobody needs the run any more, it is interrupted, and killed when that does not end it:
        ``RunError`` says which.
        """
        if not quiet:
            self._log.line(f"$ tofu {' '.join(arguments)}")
        process = subprocess.Popen(  # noqa: S603
            [self._program, *arguments],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        lines: list[str] = []
        reader = threading.Thread(target=self._read, args=(process, lines, quiet), daemon=True)
        reader.start()
        end = self._end_of(process)
        reader.join(timeout=10)
        if end is not None:
            raise end
        return process.returncode, lines

    def with_time(self, seconds: float) -> Tofu:
        """The same, from now on for so long, also when nobody needs the run."""
        return Tofu(self._program, self._folder, self._environment, self._log, time.monotonic() + seconds)

    def _read(self, process: subprocess.Popen[str], lines: list[str], quiet: bool) -> None:
        if process.stdout is None:
            return
        with process.stdout:
            for line in process.stdout:
                text = line.rstrip("\n")
                lines.append(text)
                if not quiet:
                    self._log.line(text)

    def _end_of(self, process: subprocess.Popen[str]) -> RunError | None:
        """Wait for the end; the error of one that was ended, None when it ended by itself."""
        cause = self._cause(process)
        if cause is None:
            return None
        self._log.line(f"{_CAUSES[cause]}: OpenTofu is interrupted.")
        # to the program alone: it tells its own children, and writes its state
        process.send_signal(signal.SIGINT)
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            text = f"The run was killed: it was interrupted at {_LIMITS[cause]}, and did not end within ten minutes."
            return RunError(text, "killed")
        return RunError(f"The run was interrupted at {_LIMITS[cause]}.", "interrupted")

    def _cause(self, process: subprocess.Popen[str]) -> str | None:
        """Wait until the program has ended (None), its time is over, or nobody needs it."""
        while (seconds := self._deadline - time.monotonic()) > 0:
            try:
                process.wait(min(LOOK_SECONDS, seconds))
            except subprocess.TimeoutExpired:
                if self._stop.is_set():
                    return "needless"
            else:
                return None
        return "time-out"


_CAUSES = {"time-out": "The time-out is over", "needless": "Nobody needs the run any more"}
_LIMITS = {"time-out": "its time-out", "needless": "the deletion of what it was for"}


def succeed(tofu: Tofu, *arguments: str) -> list[str]:
    """Printed lines of a command that has to succeed."""
    code, lines = tofu.run(*arguments)
    if code != 0:
        raise RunError(f"tofu {arguments[0]} ended with {code}: {reason_of(lines)}")
    return lines


def reason_of(lines: list[str]) -> str:
    """First error that OpenTofu has printed, else its last line."""
    errors = (line.lstrip("│╷╵ ").strip() for line in lines)
    first = next((line for line in errors if line.startswith("Error: ")), None)
    return first or (lines[-1] if lines else "it printed nothing")


def apply(tofu: Tofu, variables: str, log: Log, *, keep: bool = False) -> dict[str, Any]:
    """Apply the template; where that fails, destroy what it made and fail. Nothing is destroyed with ``keep``, since
    something stood before; nor after a kill: the state may lack what was made, and is locked, so the next attempt
    begins with both."""
    try:
        succeed(tofu, "apply", "-input=false", "-no-color", "-auto-approve", "-lock-timeout=30s", variables)
    except RunError as error:
        if keep or error.end == "killed":
            raise
        log.line(f"{error} What was made is destroyed.")
        code, _ = tofu.with_time(END_SECONDS).run("destroy", "-input=false", "-no-color", "-auto-approve", variables)
        remainder = "" if code == 0 else " What it made could not all be destroyed."
        raise RunError(f"{error}{remainder}", error.end, is_empty=code == 0) from None
    code, lines = tofu.run("output", "-json", "-no-color", quiet=True)
    if code != 0:
        raise RunError(f"tofu output ended with {code}")
    outputs = dict(json.loads("\n".join(lines) or "{}"))
    log.hide([str(output["value"]) for output in outputs.values() if output.get("sensitive")])
    return {
        "outputs": {name: {key: output.get(key) for key in ("value", "sensitive")} for name, output in outputs.items()}
    }


def learn(tofu: Tofu, variables: str, log: Log) -> None:
    """Apply before a destroy, since a run before has died: what it made may be missing in the state. Where this fails,
    what is known is destroyed all the same."""
    log.line("An earlier run died: the template is applied again, so that the state knows what is there.")
    tofu.run("apply", "-input=false", "-no-color", "-auto-approve", "-lock-timeout=30s", variables)


def destroy(tofu: Tofu, variables: str, _log: Log) -> dict[str, Any]:
    """Destroy what the state names."""
    succeed(tofu, "destroy", "-input=false", "-no-color", "-auto-approve", "-lock-timeout=30s", variables)
    return {}


def plan(tofu: Tofu, variables: str, _log: Log) -> dict[str, Any]:
    """Compare what is there with the template: whether they differ, and OpenTofu's own summary."""
    arguments = ("plan", "-input=false", "-no-color", "-detailed-exitcode", "-lock=false", variables)
    code, lines = tofu.run(*arguments)
    if code not in (0, 2):
        raise RunError(f"tofu plan ended with {code}: {reason_of(lines)}")
    summary = next((line.strip() for line in reversed(lines) if line.startswith(("Plan:", "No changes"))), "")
    return {"drifted": code == 2, "summary": summary}


def validate(tofu: Tofu, _variables: str, _log: Log) -> dict[str, Any]:
    """Check the template without a look at anything."""
    succeed(tofu, "validate", "-no-color")
    return {}


COMMANDS: dict[str, Callable[[Tofu, str, Log], dict[str, Any]]] = {
    "apply": apply,
    "destroy": destroy,
    "plan": plan,
    "validate": validate,
}


def environment_of(
    task: dict[str, Any], api: Api, room: Path, environ: dict[str, str], *, own_backend: bool
) -> dict[str, str]:
    """Environment of OpenTofu: what the task gives, a home of its own, and the place and the key of the state."""
    home = room / "home"
    home.mkdir()
    kubeconfig = str(task.get("kubeconfig") or "")
    if kubeconfig:
        path = room / "kubeconfig"
        path.touch(0o600)
        path.write_text(kubeconfig)
        variables = {name: str(path) for name in ("KUBECONFIG", "KUBE_CONFIG_PATH")}
        task["environment"] = {**variables, **task.get("environment", {})}
    variables = {"HOME": str(home), "TF_IN_AUTOMATION": "1", "TF_INPUT": "0", "CHECKPOINT_DISABLE": "1"}
    if not own_backend:
        variables |= {
            "TF_HTTP_ADDRESS": f"{api.url}/state",
            "TF_HTTP_LOCK_ADDRESS": f"{api.url}/lock",
            "TF_HTTP_UNLOCK_ADDRESS": f"{api.url}/lock",
            # an HTTP API of AWS knows no method LOCK
            "TF_HTTP_LOCK_METHOD": "PUT",
            "TF_HTTP_UNLOCK_METHOD": "DELETE",
            "TF_HTTP_USERNAME": "run",
            "TF_HTTP_PASSWORD": api.token,
            "TF_ENCRYPTION": encryption(str(task["passphrase"])),
        }
    inherited = {name: environ[name] for name in (*INHERITED, *OF_ROLE) if name in environ}
    return {**inherited, **{str(key): str(value) for key, value in task.get("environment", {}).items()}, **variables}


def encryption(passphrase: str) -> str:
    """OpenTofu's own configuration by which it seals state and plans."""
    sealed = {"method": "method.aes_gcm.stockyard", "enforced": True}
    return json.dumps(
        {
            # OpenTofu's releases have no provider of static keys; a long random passphrase needs few rounds
            "key_provider": {"pbkdf2": {"stockyard": {"passphrase": passphrase, "iterations": 200_000}}},
            "method": {"aes_gcm": {"stockyard": {"keys": "${key_provider.pbkdf2.stockyard}"}}},
            "state": sealed,
            "plan": sealed,
        }
    )
