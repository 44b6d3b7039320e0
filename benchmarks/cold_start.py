"""What importing each function costs in a fresh interpreter, against what no function could do without.

The baseline is boto3 with a DynamoDB client and a powertools Logger. For every handler two costs are measured: its
import, and its import with the table's client, which every handler needs on its first call. Baseline and handlers take
turns, in an order that the seed shuffles, so that load on the machine hits all of them alike; figures are medians.
The ratio that counts is of CPU time, which other programs disturb least; milliseconds and their ratio are wall time.

    python -m benchmarks.cold_start [--runs N] [--seed N]

Prints a table for people, then one JSON line. Exit 1 when a handler costs more than ``LIMIT`` baselines or loads a
package of ``HEAVY``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 1.5
"""Baselines that a handler may cost, its first client included."""
HEAVY = ("keycloak", "httpx", "kubernetes", "aws_xray_sdk", "requests")
"""Packages that are loaded where they are called, never by an import of a handler."""
BASELINE = "baseline"
SECONDS = 120
"""A fresh interpreter that takes longer is broken."""

_BASELINE_CODE = 'import boto3; boto3.client("dynamodb"); from aws_lambda_powertools import Logger; Logger()'
_PROBE = """
import sys, time
start, cpu = time.perf_counter(), time.process_time()
{code}
loaded, loaded_cpu = time.perf_counter(), time.process_time()
{first}
end, end_cpu = time.perf_counter(), time.process_time()
import json
heavy = [name for name in {heavy!r} if name in sys.modules]
print(json.dumps([loaded - start, end - start, loaded_cpu - cpu, end_cpu - cpu, heavy]))
"""
_ENVIRONMENT = {
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "none",
    "AWS_SECRET_ACCESS_KEY": "none",
    "AWS_EC2_METADATA_DISABLED": "true",
    "POWERTOOLS_SERVICE_NAME": "bench",
    "STOCKYARD_TABLE": "bench",
}


@dataclass(frozen=True, slots=True)
class Sample:
    """Seconds of one interpreter: wall and CPU, up to the import and up to the table's client."""

    imported: float
    ready: float
    imported_cpu: float
    ready_cpu: float
    heavy: tuple[str, ...]


def handlers() -> tuple[str, ...]:
    """Names of the functions: the folders of ``functions`` that have a handler."""
    return tuple(sorted(path.parent.name for path in (ROOT / "functions").glob("*/handler.py")))


def probe(subject: str) -> str:
    """The program that measures ``subject``."""
    if subject == BASELINE:
        return _PROBE.format(code=_BASELINE_CODE, first="pass", heavy=HEAVY)
    code = f"import functions.{subject}.handler"
    return _PROBE.format(code=code, first="from stockyard import wiring; wiring.registry()", heavy=HEAVY)


def measure(subject: str) -> Sample:
    """One sample in a fresh interpreter. Raises ``CalledProcessError`` when the subject cannot be imported."""
    path = os.pathsep.join((str(ROOT), str(ROOT / "layers" / "common" / "python")))
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "SYSTEMROOT") if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-c", probe(subject)],
        env={**kept, **_ENVIRONMENT, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
        timeout=SECONDS,
    )
    imported, ready, imported_cpu, ready_cpu, heavy = json.loads(done.stdout)
    return Sample(imported, ready, imported_cpu, ready_cpu, tuple(heavy))


def samples(subjects: Sequence[str], runs: int, seed: int) -> dict[str, list[Sample]]:
    """``runs`` samples of each subject, interleaved; one more of each goes first and is thrown away."""
    order, chance = list(subjects), random.Random(seed)
    found: dict[str, list[Sample]] = {subject: [] for subject in subjects}
    for run in range(runs + 1):
        chance.shuffle(order)
        for subject in order:
            sample = measure(subject)
            if run:
                found[subject].append(sample)
    return found


def rows(found: Mapping[str, Sequence[Sample]]) -> list[dict[str, object]]:
    """A row per handler: milliseconds and how many baselines they are, worst first."""
    base = median(one.ready for one in found[BASELINE])
    base_cpu = median(one.ready_cpu for one in found[BASELINE])
    made: list[tuple[float, dict[str, object]]] = []
    for subject, taken in found.items():
        if subject == BASELINE:
            continue
        ready, cpu = median(one.ready for one in taken), median(one.ready_cpu for one in taken)
        row: dict[str, object] = {
            "handler": subject,
            "import_ms": round(median(one.imported for one in taken) * 1000, 1),
            "import_ratio": round(median(one.imported_cpu for one in taken) / base_cpu, 2),
            "ready_ms": round(ready * 1000, 1),
            "ratio": round(cpu / base_cpu, 2),
            "wall_ratio": round(ready / base, 2),
            "heavy": sorted({name for one in taken for name in one.heavy}),
        }
        made.append((cpu, row))
    return [row for _, row in sorted(made, key=lambda pair: -pair[0])]


def failures(table: Sequence[Mapping[str, object]]) -> list[str]:
    """What is wrong, one line each."""
    slow = [f"{row['handler']}: {row['ratio']} baselines" for row in table if float(str(row["ratio"])) > LIMIT]
    return slow + [f"{row['handler']} loads {row['heavy']}" for row in table if row["heavy"]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(prog="benchmarks.cold_start", description="Import cost of every handler")
    parser.add_argument("--runs", type=int, default=9, help="interpreters per handler")
    parser.add_argument("--seed", type=int, default=1, help="of the order in which they take turns")
    chosen = parser.parse_args(arguments)
    subjects = (BASELINE, *handlers())
    found = samples(subjects, chosen.runs, chosen.seed)
    table = rows(found)
    base_ms = round(median(one.ready for one in found[BASELINE]) * 1000, 1)
    print(f"{'handler':<16}{'import':>12}{'ratio':>7}{'and client':>13}{'ratio':>7}{'wall':>7}")
    for row in table:
        print(
            f"{row['handler']:<16}{row['import_ms']:>9} ms{row['import_ratio']:>7}"
            f"{row['ready_ms']:>10} ms{row['ratio']:>7}{row['wall_ratio']:>7}"
        )
    wrong = failures(table)
    figures = {
        "benchmark": "cold_start",
        "seed": chosen.seed,
        "workload": {"runs": chosen.runs, "subjects": len(subjects), "python": sys.version.split()[0]},
        "baseline_ms": base_ms,
        "limit": LIMIT,
        "rows": table,
        "failures": wrong,
    }
    print(json.dumps(figures))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
