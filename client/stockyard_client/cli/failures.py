"""Failures as a person and a script see them: a readable text on stderr, and the exit code."""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import typer

from stockyard_client.cli.context import Context, NotConfigured
from stockyard_client.cli.documents.bad_input import BadInput
from stockyard_client.cli.groups import Group
from stockyard_client.errors import (
    ApiError,
    ConnectionFailed,
    LoginFailed,
    OperationFailed,
    PoolsNotReady,
    StockyardClientError,
    WaitTimedOut,
)

if TYPE_CHECKING:
    from stockyard_client.models import Operation

FAILURE, USAGE, NOT_FOUND, NOT_ALLOWED, CONFLICT, QUOTA, TIMED_OUT, INTERRUPTED = 1, 2, 3, 4, 5, 6, 124, 130
BROKEN_PIPE = 141
"""As a shell says it of a program that wrote to a pipe that nobody reads."""

INVALID = "InvalidInput"
_QUOTA_TYPES = frozenset({"QuotaExceeded", "BudgetReached", "VendorQuotaExceeded", "InsufficientCapacity"})
# AWS's own words for a full account or an empty zone, as they stand in the cause of an operation without a type of
# its cause, which older APIs send; throttling (RequestLimitExceeded, BandwidthLimitExceeded) is neither.
_QUOTA_WORDS = re.compile(
    r"\bInsufficient\w*Capacity\b|QuotaExceeded|(?<!Request)(?<!Bandwidth)LimitExceeded|\bTooManyLoadBalancers\b"
    r"|do not have sufficient \S* ?capacity|current vCPU limit|maximum number of (VPCs|addresses|internet gateways)"
)
_STATUS_CODES = {
    400: USAGE,
    413: USAGE,
    415: USAGE,
    422: USAGE,
    401: NOT_ALLOWED,
    403: NOT_ALLOWED,
    404: NOT_FOUND,
    409: CONFLICT,
    412: CONFLICT,
}


_KINDS: tuple[tuple[type[BaseException], int], ...] = (
    (KeyboardInterrupt, INTERRUPTED),
    (WaitTimedOut, TIMED_OUT),
    (PoolsNotReady, TIMED_OUT),
    (BadInput, USAGE),
    (NotConfigured, USAGE),
    (LoginFailed, NOT_ALLOWED),
)


def exit_code(error: BaseException) -> int:
    """The exit code that tells a script what went wrong."""
    if isinstance(error, ApiError):
        return QUOTA if error.error_type in _QUOTA_TYPES else _STATUS_CODES.get(error.status, FAILURE)
    if isinstance(error, OperationFailed):
        return _operation_code(error.operation)
    return next((code for kind, code in _KINDS if isinstance(error, kind)), FAILURE)


def explain(context: Context, error: BaseException) -> None:
    """Says what went wrong, where, and what to do; never more than the API itself told."""
    match error:
        case KeyboardInterrupt():
            context.say(context.interrupted)
        case ApiError():
            _explain_refusal(context, error)
        case ConnectionFailed():
            _explain_silence(context, error)
        case OperationFailed():
            _explain_operation(context, error.operation)
        case WaitTimedOut():
            _headline(context, str(error))
            context.say(f"It goes on by itself. To wait again: stockyard operation wait {error.operation.id}")
        case PoolsNotReady():
            _headline(context, str(error))
            context.say("It goes on by itself.")
        case _:
            _headline(context, str(error))


def _operation_code(operation: Operation) -> int:
    error = operation.error
    if error is None:
        return FAILURE
    if error.cause_type:
        full = error.cause_type in _QUOTA_TYPES
    else:
        full = error.error_type in _QUOTA_TYPES or _QUOTA_WORDS.search(error.cause) is not None
    return QUOTA if full else FAILURE


def _headline(context: Context, text: str) -> None:
    from rich.text import Text

    context.err.print(Text.assemble(("Error: ", "bold red"), text), soft_wrap=True)


def _explain_refusal(context: Context, error: ApiError) -> None:
    code = f"({error.error_type}, {error.status})"
    problems = list(dict.fromkeys(_located(context, problem.pointer, problem.detail) for problem in error.errors))
    is_said_below = bool(problems) and all(problem.detail in error.detail for problem in error.errors)
    if len(problems) == 1 and (error.error_type == INVALID or is_said_below):
        _headline(context, f"{problems[0]} {code}")
    else:
        is_counted = is_said_below or (bool(problems) and error.error_type == INVALID)
        count = f"{len(problems)} {'fields are not valid' if error.error_type == INVALID else 'faults'}"
        _headline(context, f"{count if is_counted else error.detail} {code}")
        for problem in _with_repetitions_counted(context, error):
            context.say(f"  {problem}")
    if error.status == 401:
        context.say(_about_token(context))
    if error.retry_after is not None:
        context.say(f"Try again in {error.retry_after:g} s.")
    if error.request_id:
        context.say(f"Request id: {error.request_id}", "dim")


MOST_LOCATIONS = 3
"""Locations that the same fault is said of one by one."""


def _with_repetitions_counted(context: Context, error: ApiError) -> list[str]:
    """The faults; one that more than ``MOST_LOCATIONS`` fields share is said once, with the first location."""
    by_detail: dict[str, list[str]] = {}
    for problem in error.errors:
        by_detail.setdefault(problem.detail, []).append(problem.pointer)
    lines: list[str] = []
    for detail, pointers in by_detail.items():
        if len(pointers) > MOST_LOCATIONS:
            lines.append(f"{context.location_of(pointers[0])} and {len(pointers) - 1} other places: {detail}")
        else:
            lines += dict.fromkeys(_located(context, pointer, detail) for pointer in pointers)
    return lines


def _located(context: Context, pointer: str, detail: str) -> str:
    location = context.location_of(pointer)
    return f"{location}: {detail}" if location else detail


def _about_token(context: Context) -> str:
    """Reason why the token was refused, as far as it can be seen here, and a cure."""
    hint = "log in with `stockyard login`, or set STOCKYARD_TOKEN"
    credential = context.held_token()
    if credential is None:
        return f"There is no token: {hint}."
    from stockyard_client.sessions import ends_at

    end, source = ends_at(credential.text), credential.source
    if end is None:
        return f"{source} is no token of an issuer (a JWT): {hint}."
    if end <= context.now():
        return f"{source} expired at {_moment(end)}: {hint}."
    return (
        f"{source} is refused, and ends only at {_moment(end)}: is it of the issuer that this API trusts? Else {hint}."
    )


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _explain_silence(context: Context, error: ConnectionFailed) -> None:
    _headline(context, str(error))
    if not error.unreached:
        return
    if context.is_local_api:
        context.say("Is a local cloud running? `make serve` starts one, and says where its environment is.")
        if context.environment.get("STOCKYARD_URL"):
            context.say("STOCKYARD_URL may be that of one that has stopped: source its `env` again.")
    else:
        context.say("Is the URL right? It is STOCKYARD_URL, --url, or that of the last login.")


def _explain_operation(context: Context, operation: Operation) -> None:
    error = operation.error
    if error is None:
        _headline(context, f"operation {operation.id} failed")
        return
    if operation.status == "cancelled":
        _headline(context, f"operation {operation.id} was cancelled: {error.cause}")
        return
    location = f" in phase {error.phase}" if error.phase else ""
    _headline(context, f"{error.error_type}{location}: {error.cause}")
    if error.hint:
        context.say(f"Hint: {error.hint}")
    if error.console:
        context.say(f"Console of the machine, its last lines:\n{error.console}", "dim")
    context.say(f"Operation: {operation.id}", "dim")
    if operation.kind == "create_cluster":
        from stockyard_client.cli.advice import advice_of

        context.say(advice_of(context, operation, short=_operation_code(operation) == QUOTA))


class FailuresAsText(Group):
    """A group that turns what a command raises into text and exit code, also under a test runner."""

    def invoke(self, ctx: Any) -> Any:
        """Runs the command."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            # the words of the library that reads options, before its sentence
            error.message = error.message.removeprefix("Value error, ")
            raise
        except (StockyardClientError, KeyboardInterrupt) as error:
            context = ctx.find_object(Context) or Context()
            explain(context, error)
            raise typer.Exit(exit_code(error)) from None
        except UnicodeEncodeError:
            context = ctx.find_object(Context) or Context()
            explain(context, BadInput("an argument is not UTF-8 text"))
            raise typer.Exit(USAGE) from None
        except BrokenPipeError:
            # whoever read has seen enough, as `head` does
            _close_output()
            raise typer.Exit(BROKEN_PIPE) from None


def _close_output() -> None:
    """Lets nothing more be written to a pipe that nobody reads, also not when the interpreter ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError):  # a test's output is no file
        os.dup2(nowhere, sys.stdout.fileno())
