"""Prints imports across packages and the walks of three requests, of the files as they are and of commits.

python -m tests.measure e5acb5b6
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from tests.measure.imports import counted
from tests.measure.names import Names
from tests.measure.source import committed, files, parsed
from tests.measure.walk import REQUESTS, begin, walk


def lines(names: Names, detailed: bool) -> Iterator[str]:
    """Lines that are printed of one state of the code."""
    yield ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in asdict(counted(names.trees)).items())
    for request, (package, function) in REQUESTS.items():
        walked = walk(names, begin(names, package, function))
        yield (
            f"walk of a {request}: {len(walked.modules)} modules, {len(walked.packages)} packages,"
            f" {len(walked.visits)} visits"
        )
        if detailed:
            yield from (f"  {module}" for module in walked.modules)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints each state."""
    parser = argparse.ArgumentParser(prog="python -m tests.measure", description=__doc__)
    parser.add_argument("commits", nargs="*", help="commits to compare with")
    parser.add_argument("--modules", action="store_true", help="print the modules that are entered too")
    options = parser.parse_args(arguments)
    states = {"now": files(), **{commit: committed(commit) for commit in options.commits}}
    for state, sources in states.items():
        sys.stdout.write("\n".join([state, *lines(Names(parsed(sources)), options.modules)]) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
