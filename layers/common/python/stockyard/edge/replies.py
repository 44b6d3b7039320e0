"""HTTP answers: documents, problems, and what is logged of a failure."""

from __future__ import annotations

import json
import traceback
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from stockyard.domain.values.frozen import dataclass
from stockyard.edge import problems
from stockyard.errors import StockyardError

if TYPE_CHECKING:
    from aws_lambda_powertools import Logger


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP answer; ``body`` is JSON text, but of a file."""

    status: int
    headers: Mapping[str, str]
    body: str = field(repr=False)
    encoded: bool = False
    """Whether ``body`` is in base 64, as bytes are that are no text."""


def reply(
    status: int,
    document: Mapping[str, Any],
    headers: Mapping[str, str],
    *,
    problem: bool = False,
    texts: Mapping[str, str] | None = None,
) -> Reply:
    """``document`` as a reply that no cache keeps. ``texts`` are further members of it, as JSON."""
    kind = problems.CONTENT_TYPE if problem else "application/json"
    fixed = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Content-Type": kind}
    text = json.dumps(document, separators=(",", ":"))
    if texts:
        members = [*([text[1:-1]] if document else []), *(f"{json.dumps(name)}:{texts[name]}" for name in texts)]
        text = f"{{{','.join(members)}}}"
    return Reply(status, {**headers, **fixed}, text)


def refusal(error: StockyardError, *, path: str, request_id: str, headers: Mapping[str, str] | None = None) -> Reply:
    """``error`` as a reply."""
    document = problems.document(error, instance=path, request_id=request_id)
    return reply(error.status, document, {**problems.headers(error), **(headers or {})}, problem=True)


def log_failure(logger: Logger, error: Exception, request_id: str) -> None:
    """Log what failed and where: the type and the lines. Its text stays out, because it may hold what was sent."""
    chain: list[str] = []
    current: BaseException | None = error
    while current is not None and len(chain) < 5:
        frames = traceback.extract_tb(current.__traceback__)[-8:]
        location = " < ".join(
            f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in reversed(frames)
        )
        chain.append(f"{type(current).__name__} at {location}")
        current = current.__cause__ or current.__context__
    logger.error("request failed", extra={"request_id": request_id, "chain": chain})
