"""Logs of runs: the output of programs that worked for an operation, kept line by line while it comes in.

The lines stand in parts in the object storage, whose names a ``RunLog`` lists. A part is stored first and listed then,
so a reader never meets a name without its part; a part that nobody listed ends with the bucket's life cycle. Lines have
numbers, so what is delivered twice is kept once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from stockyard.domain.operation_records import Operation, OperationRun, RunLog
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.redaction import redact_lines
from stockyard.errors import IllegalTransition, NotFound
from stockyard.operations.engine.advance import until_written
from stockyard.operations.services import Services
from stockyard.ports import Create, Replace

MOST_BYTES = 5 * 1024 * 1024
"""Bytes of a run's lines that are kept; of what comes then only the fact."""
MOST_PARTS = 1000
MOST_CHARACTERS = 4096
"""Characters of a line that are kept."""
MOST_RUNS = 50
"""Runs of an operation that are kept."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a run's output. ``number`` counts from 1 within the run, ``time`` is when it came in."""

    run: str
    attempt: int
    number: int
    time: str
    text: str


Position = dict[tuple[str, int], int]
"""For each run, by name and attempt, the number of its last line that somebody has read."""


def log_id(operation_id: str, name: str, attempt: int) -> str:
    """The id of a run's log."""
    return f"{operation_id}/{attempt:04}/{name}"


@until_written("operation changes too often to record a run")
def begin_run(services: Services, operation_id: str, run: OperationRun) -> None:
    """Record that a run has begun. Done twice, the second time changes nothing; of an operation that is not there
    nothing is recorded."""
    operation = services.store.get(Operation, operation_id)
    if operation is None or _index(operation, run.name, run.attempt) is not None or len(operation.runs) >= MOST_RUNS:
        return
    log = RunLog(log_id(operation_id, run.name, run.attempt), run.started_at)
    changed = replace(operation, runs=(*operation.runs, run), version=operation.version + 1)
    services.store.commit(Replace(changed), Create(log))


@until_written("operation changes too often to record the end of a run")
def end_run(services: Services, operation_id: str, name: str, attempt: int, error: str | None = None) -> None:
    """Record the end of a run, with the reason where it failed. Done twice, the first end stays."""
    operation = services.store.get(Operation, operation_id)
    index = _index(operation, name, attempt) if operation is not None else None
    if operation is None or index is None or operation.runs[index].ended_at is not None:
        return
    runs = list(operation.runs)
    runs[index] = replace(runs[index], ended_at=services.now(), error=error)
    services.store.commit(Replace(replace(operation, runs=tuple(runs), version=operation.version + 1)))


@until_written("log of the run is written by too many at once")
def append(
    services: Services, operation_id: str, name: str, attempt: int, lines: Sequence[str], *, first: int = 1
) -> int:
    """Keep lines of a run, the first of which has the number ``first``; those that are kept already are left out. The
    number of lines that are kept then.

    Lines are freed of what looks like a secret, and cut; beyond ``MOST_BYTES`` they are dropped. ``NotFound`` for a run
    that has not begun, ``IllegalTransition`` where lines before ``first`` are missing.
    """
    log = services.store.get(RunLog, log_id(operation_id, name, attempt))
    if log is None:
        raise NotFound(f"The operation has no run {name} in attempt {attempt}.")
    line_count = _count(log)
    if first > line_count + 1 and not log.is_cut:
        raise IllegalTransition(f"Line {line_count + 1} of the run {name} is missing: {first} came.")
    new = lines[max(0, line_count + 1 - first) :]
    if not new or log.is_cut:
        return line_count
    texts = [line[:MOST_CHARACTERS] for line in redact_lines(new)]
    now = services.now()
    data = "".join(f"{now} {text}\n" for text in texts).encode()
    if log.size + len(data) > MOST_BYTES or len(log.parts) >= MOST_PARTS:
        services.store.commit(Replace(replace(log, is_cut=True, version=log.version + 1)))
        return line_count
    part = f"{len(log.parts):04}-{hashlib.sha256(data).hexdigest()[:16]}"
    services.objects.put(_object(log.id, part), data)
    count = line_count + len(texts)
    changed = replace(log, parts=(*log.parts, part), lines=(*log.lines, count), size=log.size + len(data))
    services.store.commit(Replace(replace(changed, version=log.version + 1)))
    return count


def lines_after(
    services: Services, operation: Operation, position: Position, limit: int, name: str | None = None
) -> tuple[list[LogLine], Position, bool]:
    """At most ``limit`` lines that come after the position, run by run; the position behind them, and whether there are
    more. ``name``: only of the runs of that name. A part whose time is over has no lines."""
    lines: list[LogLine] = []
    end_position = dict(position)
    for run in operation.runs:
        if name is not None and run.name != name:
            continue
        key = (run.name, run.attempt)
        log = services.store.get(RunLog, log_id(operation.id, *key))
        for part, end in zip(log.parts, log.lines, strict=True) if log is not None else ():
            last = end_position.get(key, 0)
            if end <= last:
                continue
            room = limit - len(lines)
            if room == 0:
                return lines, end_position, True
            new = [line for line in _read(services, log_id(operation.id, *key), part, run, end) if line.number > last]
            lines += new[:room]
            if len(new) > room:
                return lines, {**end_position, key: new[room - 1].number}, True
            end_position[key] = end
    return lines, end_position, False


def _read(services: Services, id: str, part: str, run: OperationRun, end: int) -> list[LogLine]:
    data = services.objects.get(_object(id, part))
    entries = data.decode().splitlines() if data is not None else []
    begin = end - len(entries)
    pairs = (entry.partition(" ") for entry in entries)
    return [
        LogLine(run.name, run.attempt, begin + number, time, text) for number, (time, _, text) in enumerate(pairs, 1)
    ]


def _object(id: str, part: str) -> str:
    return f"logs/{id}/{part}"


def _count(log: RunLog) -> int:
    return log.lines[-1] if log.lines else 0


def _index(operation: Operation, name: str, attempt: int) -> int | None:
    indexes = (index for index, run in enumerate(operation.runs) if (run.name, run.attempt) == (name, attempt))
    return next(indexes, None)
