"""Runs the parts of the tests that have no record of what they are now, with the full counts.

python -m tests.soak [--seed N] [--list] [--again] [PART ...]

A part is a file of crash cells, such as ``tests/workflows/test_pool_crash_matrix.py``, or a folder, such as
``tests/properties``. Without a part all are run that were changed, failed, or were never run with this seed.
Ends with one JSON line: each part with its commit, its counts and its figures, and what has no record of now.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from tests.soak.inputs import Inputs, tracked
from tests.soak.parts import digest, parts
from tests.soak.records import FOLDER, Record, Records

ROOT = Path(__file__).resolve().parents[2]
PYTEST = ("-n", "2", "--dist", "loadfile", "--timeout", "14400")


def folder_of(seed: int) -> Path:
    """Folder with the records of a seed."""
    return ROOT / ".local" / "soak" / str(seed)


def current(inputs: Inputs, by_part: Mapping[str, Sequence[str]], records: Records) -> dict[str, Record]:
    """Records that are of what their parts read now, and without a failure."""
    by_name = {part: records.get(part) for part in by_part}
    return {
        part: record
        for part, record in by_name.items()
        if record and record.passed and record.digest == digest(inputs, by_part[part])
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what has to be run; 0 when all parts that were asked for have a record of now, without a failure."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("STOCKYARD_SEED") or "1"))
    parser.add_argument("--list", action="store_true", help="say what would be run, and run nothing")
    parser.add_argument("--again", action="store_true", help="run the parts again that have a record")
    options = parser.parse_args(arguments)
    inputs, records = Inputs(ROOT, tuple(tracked(ROOT))), Records(folder_of(options.seed))
    by_part = parts(inputs)
    if unknown := sorted(set(options.parts) - set(by_part)):
        parser.error(f"no such part: {', '.join(unknown)}; the parts are {', '.join(by_part)}")
    chosen_parts = {part: by_part[part] for part in options.parts or by_part}
    done = {} if options.again else current(inputs, chosen_parts, records)
    waiting = [part for part in chosen_parts if part not in done]
    if waiting and not options.list:
        files = [file for part in waiting for file in chosen_parts[part]]
        environment = {
            **os.environ,
            "STOCKYARD_SOAK": "1",
            "STOCKYARD_SEED": str(options.seed),
            FOLDER: str(records.folder),
        }
        subprocess.run([sys.executable, "-m", "pytest", *PYTEST, *files], cwd=ROOT, env=environment, check=False)
        done = current(Inputs(ROOT, tuple(tracked(ROOT))), chosen_parts, records)
        waiting = [part for part in chosen_parts if part not in done]
    rows = {part: {key: value for key, value in asdict(done[part]).items() if key != "part"} for part in done}
    sys.stdout.write(json.dumps({"seed": options.seed, "parts": rows, "without_record": waiting}) + "\n")
    return 1 if waiting and not options.list else 0


if __name__ == "__main__":
    sys.exit(main())
