"""Query parameters: declared by name, typed, and unknown ones refused, so that ``?dryrun=true`` changes nothing."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from urllib.parse import parse_qsl, urlencode

from stockyard.domain.values.frozen import dataclass
from stockyard.edge.http.paging import DEFAULT_SIZE, MAX_SIZE, MOST_COUNTED
from stockyard.errors import FieldProblem, InvalidInput

_MAX_LENGTH = 1024
_ELSEWHERE: Mapping[str, str] = {
    **dict.fromkeys(("limit", "size", "perpage", "maxresults", "maxitems", "top"), "page_size"),
    **dict.fromkeys(("cursor", "continue", "nextpagetoken", "nexttoken", "startingtoken", "token"), "page_token"),
    **dict.fromkeys(("since", "startafter"), "after"),
}
"""What other APIs call parameters of ours, without underscores."""


@dataclass(frozen=True, slots=True)
class Query:
    """One parameter. ``values`` lists what it may be; ``minimum`` and ``maximum`` bound an integer.

    ``pattern`` is found in every text that is allowed. ``finds``: it names a resource, and the answer is 404 where
    there is no such one.
    """

    name: str
    description: str
    kind: Literal["string", "boolean", "integer"] = "string"
    values: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    pattern: str | None = None
    finds: bool = False


DRY_RUN = Query("dry_run", "Answer with the plan; nothing is written.", "boolean")
PAGE = (
    Query("page_size", f"Items on a page, {DEFAULT_SIZE} by default.", "integer", minimum=1, maximum=MAX_SIZE),
    Query("page_token", "The `next_page_token` of the page before."),
)
COUNT = Query(
    "count",
    f"Also how many there are in the whole list, counted up to {MOST_COUNTED:,}: the answer's `total`.",
    "boolean",
)
MOST_SECONDS = 20
"""How long an answer may wait for news: the gateway gives up after 30 seconds, a function of ours after 29."""
WAIT = Query(
    "wait",
    "Answer as soon as there is news, or after so many seconds that there was none: of a list with `after`, of one"
    " resource with `If-None-Match`. When too many wait already, the answer comes at once, with `Retry-After`.",
    "integer",
    minimum=0,
    maximum=MOST_SECONDS,
)
ORDER = Query("order", "`desc` lists the newest first, `asc`, the default, the oldest.", values=("asc", "desc"))
SINCE = Query(
    "since",
    "Only what is not older than this time, as 2026-01-31T12:00:00Z.",
    pattern=r"^20\d\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,3})?Z$",
)
TAG = Query("tag", "Only what has this tag, as key=value.", pattern="^.+=")
LABEL = Query("label", "Only what has this label, as key=value.", pattern="^.+=")
FORM = Query("form", "With `manifest` the answer is the document as it came.", values=("manifest",))


def moment_of(since: str) -> datetime:
    """The moment that ``SINCE`` names. A day that its month does not have is one of the next month."""
    date, _, clock = since.removesuffix("Z").partition("T")
    year, month, day = map(int, date.split("-"))
    hours, minutes, seconds = clock.split(":")
    passed = timedelta(days=day - 1, hours=int(hours), minutes=int(minutes), seconds=float(seconds))
    return datetime(year, month, 1, tzinfo=UTC) + passed


def tagged(tags: Mapping[str, str], pair: str | None) -> bool:
    """Whether the tag that ``TAG`` (or the label that ``LABEL``) asks for is among ``tags``; always, for none.

    A key may have equals signs itself, so ``pair`` is not taken apart.
    """
    return pair is None or any(f"{key}={value}" == pair for key, value in tags.items())


def read(event: Mapping[str, Any], declared: Sequence[Query]) -> dict[str, Any]:
    """The parameters of a request, typed. ``InvalidInput`` for an unknown, repeated or malformed one."""
    parameters = {query.name: query for query in declared}
    values: dict[str, Any] = {}
    for name, text in _pairs(event):
        if name not in parameters:
            raise InvalidInput(f"There is no query parameter {_printable(name)} here{_end(name, parameters)}")
        if name in values:
            twice = f"The query parameter {name} is given twice."
            raise InvalidInput(twice, errors=[FieldProblem(f"/{name}", "is given twice")])
        values[name] = _value(parameters[name], text)
    return values


def _pairs(event: Mapping[str, Any]) -> list[tuple[str, str]]:
    raw = event.get("rawQueryString")
    if raw is None:
        raw = urlencode(event.get("queryStringParameters") or {})
    try:
        return parse_qsl(raw, keep_blank_values=True, errors="strict", max_num_fields=50)
    except ValueError:
        raise InvalidInput("The query string cannot be read.") from None


def _value(query: Query, text: str) -> Any:
    if not 1 <= len(text) <= _MAX_LENGTH:
        raise InvalidInput.of_parameter(query.name, f"must have 1 to {_MAX_LENGTH} characters.")
    if query.kind == "boolean":
        if text not in ("true", "false"):
            raise InvalidInput.of_parameter(query.name, "must be true or false.")
        return text == "true"
    if query.kind == "integer":
        return _integer(query, text)
    if query.values and text not in query.values:
        one_of = "one of " if len(query.values) > 1 else ""
        raise InvalidInput.of_parameter(query.name, f"must be {one_of}{', '.join(query.values)}.")
    if query.pattern and not re.search(query.pattern, text):
        raise InvalidInput.of_parameter(query.name, f"is malformed. {query.description}")
    return text


def _integer(query: Query, text: str) -> int:
    low = query.minimum if query.minimum is not None else -(2**53)
    high = query.maximum if query.maximum is not None else 2**53
    digits = text.removeprefix("-")
    number = int(text) if digits.isascii() and digits.isdecimal() and len(digits) < 17 else None
    if number is None or not low <= number <= high:
        raise InvalidInput.of_parameter(query.name, f"must be a whole number from {low} to {high}.")
    return number


def _end(name: str, parameters: Collection[str]) -> str:
    """Ending of the refusal: with a question for who may have meant another parameter."""
    from difflib import get_close_matches  # only for requests that are refused

    plain = name.lower().replace("-", "_")
    own_name = _ELSEWHERE.get(plain.replace("_", ""), plain)
    near = [own_name] if own_name in parameters else get_close_matches(plain, list(parameters), n=1, cutoff=0.75)
    return f"; did you mean {near[0]}?" if near else "."


def _printable(name: str) -> str:
    return "'" + "".join(c if c.isascii() and c.isprintable() else "?" for c in name[:64]) + "'"
