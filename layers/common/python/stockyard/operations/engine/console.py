"""Console output of a machine that did not come up: read once, before anything is removed."""

from __future__ import annotations

import json

from stockyard.domain.records import Fact, OperationRun
from stockyard.domain.values.redaction import last_part, redact
from stockyard.errors import Fenced, StockyardError, VendorError
from stockyard.lifecycle.change import S
from stockyard.operations.engine.advance import Fence
from stockyard.operations.engine.run_logs import append, begin_run, end_run
from stockyard.operations.engine.runner import Runner
from stockyard.operations.services import Services
from stockyard.ports import Put

CONSOLE = "console"
"""The fact that keeps the text with the attempt whose machine it is of."""
MOST_CHARACTERS = 4096


def keep_console(runner: Runner[S], services: Services, subject: S, fence: Fence[S], phase: str) -> None:
    """Read the console of the phase's machine and keep its last part, and the whole as the log of a run, unless that
    was done in this attempt. Nothing where there is no machine.

    A console that cannot be read holds nothing up: why is kept in its place.
    """
    if _console_of_attempt(services, subject) is not None:
        return
    try:
        text = runner.console(services, subject, fence)
    except Fenced:
        raise
    except StockyardError as error:
        text = f"The console could not be read ({error.error_type})."
    if text is not None:
        _keep_whole(services, subject, fence, phase, text)
        record = {"attempt": subject.attempt, "text": last_part(redact(text).strip("\n"), MOST_CHARACTERS)}
        services.store.commit(Put(Fact(f"{subject.id}/{CONSOLE}", json.dumps(record), services.now())))


def _keep_whole(services: Services, subject: S, fence: Fence[S], phase: str, text: str) -> None:
    """Keep the whole text as the log of a run. Where that cannot be, its last part is enough."""
    operation_id, attempt = fence.operation_id, subject.attempt
    try:
        begin_run(services, operation_id, OperationRun(CONSOLE, attempt, phase, services.now()))
        try:
            append(services, operation_id, CONSOLE, attempt, text.strip("\n").splitlines())
        except VendorError as error:
            # a run without an end would look as if it went on
            end_run(services, operation_id, CONSOLE, attempt, f"The output could not be kept ({error.error_type}).")
            raise
        end_run(services, operation_id, CONSOLE, attempt)
    except StockyardError as error:
        services.telemetry.log("console not kept", operation_id=operation_id, error=error.error_type)


def console_of(services: Services, subject: S) -> str:
    """Console output that was kept in this attempt; empty for nothing."""
    return _console_of_attempt(services, subject) or ""


def _console_of_attempt(services: Services, subject: S) -> str | None:
    fact = services.store.get(Fact, f"{subject.id}/{CONSOLE}")
    record = json.loads(fact.value) if fact is not None else {}
    return str(record["text"]) if record.get("attempt") == subject.attempt else None
