"""Runs conformance files against the core: ``python tests/conformance/run.py FILE...``.

Prints a line per failing or skipped case and one closing line for all files; exit 1 if any failed. A kind or a field
that is not known fails its case, so that a new file never passes unread.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "layers" / "common" / "python"))

from stockyard.domain.values.requirements import (
    ARCH,
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    NODE_TYPE,
    OS,
    REGION,
    ZONE,
    Requirement,
    Requirements,
)
from tests.conformance import disruption, scenarios

NO_INPUT = ("id", "kind", "source", "note")
"""Fields of a case that are no input."""
KEY = "key"
"""The key of a requirement that names none."""
SKIPPED: dict[str, str] = {}
"""Cases that are not run, by id, with the decision of the product that they contradict."""
_ENTRY = frozenset({"key", "operator", "values", "minValues"})
_WELL_KNOWN = frozenset({ZONE, REGION, CAPACITY_TYPE, INSTANCE_TYPE, NODE_TYPE, ARCH, OS}) | {
    "karpenter.sh/nodepool",
    "node.kubernetes.io/windows-build",
}
"""Keys that the files let a node leave undefined and still be compatible."""
_SET = frozenset({"set", "values", "gte", "lte", "minValues", "operator"})
Json = Any


class Unreadable(Exception):
    """The case cannot be run: what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One case. ``problem`` says what was expected and came, None when it passed; ``skipped`` why it was not run."""

    id: str
    problem: str | None = None
    skipped: str | None = None


def check_fields(subject: str, document: Mapping[str, Json], fields: frozenset[str]) -> None:
    """Raises ``Unreadable`` when ``given`` has a field that is not known."""
    extra = sorted(set(document) - fields)
    if extra:
        raise Unreadable(f"{subject}: unknown field {', '.join(extra)}")


def requirement(entries: Json) -> Requirement:
    """One requirement, or several that all hold."""
    combined = Requirement(complement=True)
    for entry in entries if isinstance(entries, list) else [entries]:
        check_fields("requirement", entry, _ENTRY)
        combined = combined.intersection(Requirements.of([{KEY: KEY, **entry}])[entry.get(KEY, KEY)])
    return combined


def as_document(requirement_object: Requirement) -> dict[str, Json]:
    """A set of values in the words of the files."""
    return {
        "set": "complement" if requirement_object.complement else "finite",
        "values": sorted(requirement_object.values),
        "gte": requirement_object.gte,
        "lte": requirement_object.lte,
        "minValues": requirement_object.min_values,
        "operator": requirement_object.operator,
    }


def intersection(case: Mapping[str, Json]) -> tuple[Json, Json]:
    expected = dict(case["expected"])
    check_fields("expected", expected, _SET)
    actual = as_document(requirement(case["a"]).intersection(requirement(case["b"])))
    if isinstance(expected.get("values"), list):
        expected["values"] = sorted(expected["values"])
    return {"minValues": None, "gte": None, "lte": None, **expected}, actual


def has(case: Mapping[str, Json]) -> tuple[Json, Json]:
    return case["expected"], requirement(case["requirement"]).has(case["value"])


def operator(case: Mapping[str, Json]) -> tuple[Json, Json]:
    return case["expected"], requirement(case["requirement"]).operator


def serialize(case: Mapping[str, Json]) -> tuple[Json, Json]:
    entries_given = case["requirement"]
    key = (entries_given[0] if isinstance(entries_given, list) else entries_given).get(KEY)
    entries = requirement(entries_given).entries(key or KEY)
    expected = case["expected"] if isinstance(case["expected"], list) else [case["expected"]]
    for entry in expected:
        check_fields("expected", entry, _ENTRY)
    if key is None:
        entries = [{name: value for name, value in entry.items() if name != KEY} for entry in entries]
    return _ordered(expected), _ordered(entries)


def _ordered(entries: Sequence[Mapping[str, Json]]) -> list[Json]:
    sets = [{**entry, "values": sorted(entry["values"])} if "values" in entry else dict(entry) for entry in entries]
    return sorted(sets, key=lambda entry: json.dumps(entry, sort_keys=True))


def compatible(case: Mapping[str, Json]) -> tuple[Json, Json]:
    for entry in (*case["existing"], *case["incoming"]):
        check_fields("requirement", entry, _ENTRY)
    allowed = _WELL_KNOWN if case["allow_undefined_well_known"] else frozenset[str]()
    existing, incoming = Requirements.of(case["existing"]), Requirements.of(case["incoming"])
    actual = all(
        constraint.overlaps(existing[key]) if key in existing else key in allowed or constraint.absence_fits
        for key, constraint in incoming.items()
    )
    return case["expected"], actual


KINDS: Mapping[str, tuple[frozenset[str], Callable[[Mapping[str, Json]], tuple[Json, Json]]]] = {
    "intersection": (frozenset({"a", "b", "expected"}), intersection),
    "has": (frozenset({"requirement", "value", "expected"}), has),
    "allows_value": (frozenset({"requirement", "value", "expected"}), has),
    "operator": (frozenset({"requirement", "expected"}), operator),
    "canonical_operator": (frozenset({"requirement", "expected"}), operator),
    "serialize": (frozenset({"requirement", "expected"}), serialize),
    "compatible": (frozenset({"existing", "incoming", "allow_undefined_well_known", "expected"}), compatible),
    **dict.fromkeys(disruption.KINDS, (frozenset({"input", "expected"}), disruption.answer)),
}
"""For each kind the fields of its input, and what answers (expected, found)."""


def run_case(case: Mapping[str, Json], kind: str | None, folder: Path = Path()) -> Outcome:
    """One case of a kind, which the case itself names unless its list does. A scenario's types are in ``folder``."""
    name = str(case.get("id", "without id"))
    if name in SKIPPED:
        return Outcome(name, skipped=SKIPPED[name])
    try:
        if kind == "scenario":
            check_fields("case", {field: None for field in case if field not in NO_INPUT}, scenarios.FIELDS)
            expected, actual = scenarios.run_scenario(case, folder)
            return Outcome(name, None if expected == actual else str(actual))
        if kind is None or kind not in KINDS:
            raise Unreadable(f"unknown kind {kind!r}")
        fields, answer = KINDS[kind]
        check_fields("case", {field: None for field in case if field not in NO_INPUT}, fields)
        expected, actual = answer(case)
    except Unreadable as wrong:
        return Outcome(name, f"cannot be run: {wrong}")
    except (KeyError, TypeError, ValueError, AttributeError) as wrong:
        return Outcome(name, f"cannot be run: {type(wrong).__name__}: {wrong}")
    equal = type(expected) is type(actual) and expected == actual
    return Outcome(name, None if equal else f"expected {json.dumps(expected)}, came {json.dumps(actual)}")


def run_file(path: Path) -> list[Outcome]:
    """All cases of one file. A file of catalogues has none; one that is neither is a failure itself."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as wrong:
        return [Outcome(path.name, f"cannot be read: {wrong}")]
    if not isinstance(document, dict) or not {"cases", "scenarios", "catalogs"} & set(document):
        return [Outcome(path.name, "cannot be read: neither cases, scenarios nor catalogs")]
    outcomes = [run_case(case, case.get("kind"), path.parent) for case in document.get("cases", ())]
    return outcomes + [run_case(case, "scenario", path.parent) for case in document.get("scenarios", ())]


def main(paths: Sequence[str]) -> int:
    """Run the files, print, judge."""
    if not paths:
        print("usage: python tests/conformance/run.py FILE...", file=sys.stderr)
        return 2
    outcomes = [outcome for path in paths for outcome in run_file(Path(path))]
    failed = [outcome for outcome in outcomes if outcome.problem]
    skipped = [outcome for outcome in outcomes if outcome.skipped]
    for outcome in failed:
        print(f"FAIL {outcome.id}: {outcome.problem}")
    for outcome in skipped:
        print(f"SKIP {outcome.id}: {outcome.skipped}")
    print(f"{len(outcomes) - len(failed) - len(skipped)} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
