"""Reads cases of bug reports, and compares what is expected with what came.

What a case says and nobody here knows makes the case fail: nothing of it is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

Json = Any
_BOUNDS = ("min", "max")
_WORDS: Mapping[str, Callable[[float, float], bool]] = {
    "at most": lambda number, bound: number <= bound,
    "at least": lambda number, bound: number >= bound,
    "more than": lambda number, bound: number > bound,
    "less than": lambda number, bound: number < bound,
    "fewer than": lambda number, bound: number < bound,
    "exactly": lambda number, bound: number == bound,
}
_IN_WORDS = re.compile(rf"({'|'.join(_WORDS)}) (\d+(?:\.\d+)?)(?: \(.*\))?")
"""Such as ``at most 2``; a remark in parentheses may follow."""


class Unreadable(Exception):
    """A case that cannot be played. The text says what of it is unknown."""


class Different(Exception):
    """A case that was played, and something else came than is expected. The text says what."""


def check_fields(subject: str, document: Mapping[str, Json], known_fields: Collection[str]) -> None:
    """Raise ``Unreadable`` where the document has a field that is not known."""
    if not isinstance(document, Mapping):
        raise Unreadable(f"{subject}: an object is needed, not {document!r}")
    extra = sorted(str(name) for name in document if name not in known_fields)
    if extra:
        raise Unreadable(f"{subject}: unknown {', '.join(extra)}")


def is_number(value: Json) -> bool:
    """Whether the value is a number. Booleans are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def as_expected(expected: Json, number: float) -> bool:
    """Whether a number is as expected: exactly, within ``{min, max}``, or in words such as ``at most 2``.

    Raises ``Unreadable`` for any other form.
    """
    if is_number(expected):
        return number == float(expected)
    if isinstance(expected, Mapping) and expected and all(is_number(bound) for bound in expected.values()):
        check_fields("range", expected, _BOUNDS)
        return float(expected.get("min", number)) <= number <= float(expected.get("max", number))
    words = _IN_WORDS.fullmatch(expected.strip()) if isinstance(expected, str) else None
    if words is None:
        raise Unreadable(f"{expected!r} is no number, no range with min or max, and no words such as: at most 2")
    return _WORDS[words[1]](number, float(words[2]))


def judge(expected: Mapping[str, Json], checks: Mapping[str, Callable[[Json], str | None]]) -> None:
    """Compare each expectation. A check answers what came instead, or None where all is as expected.

    Raises ``Unreadable`` for an expectation that has no check, ``Different`` with all that differs.
    """
    check_fields("expected", expected, checks)
    answers = {name: checks[name](value) for name, value in expected.items()}
    different = [
        f"{name}: expected {expected[name]!r}, came {came}" for name, came in answers.items() if came is not None
    ]
    if different:
        raise Different("; ".join(different))


def counts(number: Callable[[], float]) -> Callable[[Json], str | None]:
    """The check of a number."""

    def check(expected: Json) -> str | None:
        came = number()
        return None if as_expected(expected, came) else f"{came:g}"

    return check


def equals(value: Callable[[], Json]) -> Callable[[Json], str | None]:
    """The check of a value that has to be equal, and of the same type."""

    def check(expected: Json) -> str | None:
        came = value()
        return None if type(came) is type(expected) and came == expected else repr(came)

    return check


def names_of(expected: Json) -> list[str]:
    """One name, or a list of names. Raises ``Unreadable`` for anything else."""
    listed = [expected] if isinstance(expected, str) else expected
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        raise Unreadable(f"{expected!r} is no name and no list of names")
    return listed


def absent(expected: Json, text: str) -> str | None:
    """Words that a text lacks; None when it has them all, whatever their case."""
    missing = [word for word in names_of(expected) if word.lower() not in text.lower()]
    return f"no {', '.join(missing)} in: {text or 'nothing'}" if missing else None


def listed(names: Iterable[str]) -> str:
    """Names for a message."""
    return ", ".join(sorted(names)) or "none"
