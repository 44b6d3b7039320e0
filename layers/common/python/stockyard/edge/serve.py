"""One request from event to reply: identity, input, idempotency, the use case, audit; every error as a problem.

The steps are functions of the ``Call`` and of what the steps before have given; ``Progress`` holds what an error is
answered with.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import field, replace
from typing import Any

from stockyard.domain.records import DONE, AuditRecord
from stockyard.domain.values import ids, times
from stockyard.domain.values.frozen import dataclass
from stockyard.edge import audit, deadline, idempotency, paths, problems, waiting
from stockyard.edge.call import Call, HeldKey, Progress
from stockyard.edge.contract import Answer, Request
from stockyard.edge.http import etag
from stockyard.edge.idempotency import Replay
from stockyard.edge.identity import header
from stockyard.edge.reading import admit, hold_key, identify, read_content, read_parameters, request_of
from stockyard.edge.replies import Reply, log_failure, refusal, reply
from stockyard.errors import CallerError, Forbidden, StockyardError, Throttled


@dataclass(frozen=True, slots=True)
class Outcome:
    """The reply to a call, with what its line of the log says besides."""

    reply: Reply
    progress: Progress
    log_keys: Mapping[str, Any] = field(default_factory=dict)


def serve(call: Call) -> Reply:
    """The reply to the call, whatever happens. Logs one line."""
    started = time.perf_counter()
    outcome = _outcome(call)
    caller = outcome.progress.caller
    call.dependencies.logger.info(
        "request",
        extra={
            "http_method": call.route.method,
            "route": call.route.path,
            "status": outcome.reply.status,
            "request_id": call.request_id,
            "tenant": caller.tenant,
            "actor": caller.actor,
            "milliseconds": round((time.perf_counter() - started) * 1000, 1),
            **outcome.log_keys,
        },
    )
    return outcome.reply


def _outcome(call: Call) -> Outcome:
    """Outcome of all steps, or of the one that failed."""
    progress = Progress()
    try:
        with deadline.within(deadline.QUESTION_SECONDS) if call.route.question else nullcontext():
            progress = replace(progress, caller=identify(call))
            admit(call, progress.caller)
            paths.check_parameters(call.params.values())
            parameters = read_parameters(call)
            progress = replace(progress, is_dry_run=parameters.is_dry_run)
            content = read_content(call)
            progress = replace(progress, field_names=content.field_names)
            request = request_of(call, progress.caller, parameters, content)
            held_key = hold_key(call, progress.caller, content, is_dry_run=parameters.is_dry_run)
            if isinstance(held_key, Replay):
                headers = {**held_key.headers, "Idempotent-Replayed": "true"}
                return Outcome(reply(held_key.status, held_key.body, headers, problem=held_key.status >= 400), progress)
            progress = replace(progress, held_key=held_key)
            request = replace(request, lease=held_key.lease if held_key is not None else None)
            answer, was_let_wait = _answer(call, request, parameters.wait_seconds)
            if answer.content is not None:
                return Outcome(Reply(*answer.content.answer(call.event)), progress)
            headers = _headers(answer, was_let_wait=was_let_wait)
            if not call.route.paged and _is_known(call, answer, parameters.wait_seconds):
                return Outcome(Reply(304, {**headers, "Cache-Control": "no-store"}, ""), progress)
            document = _document(call, answer, request)
            log_keys = {"subject": _subject_of(call, answer, document), **_operation_of(document)}
            progress = replace(progress, is_audited=_audit(call, progress, DONE, answer, document))
            if held_key is not None:
                idempotency.finish(held_key.keys, held_key.lease, answer.status, headers, document)
            return Outcome(reply(answer.status, document, headers, texts=answer.texts), progress, log_keys)
    except Exception as error:
        return Outcome(_failed(call, progress, error), progress)


def _answer(call: Call, request: Request, wait_seconds: int) -> tuple[Answer, bool]:
    """Answer of the function, and whether it was let wait; of a request that waits, once there is news."""
    depends, tenant = call.dependencies, request.caller.tenant
    if call.route.question and depends.questions is not None:
        with depends.questions(tenant, deadline.QUESTION_SECONDS) as allowed:
            if not allowed:
                detail = "So many questions of the tenant are being answered as may be at a time."
                raise Throttled(detail, retry_after=waiting.ASK_AGAIN)
            return call.handler(request), True
    return waiting.until_news(
        lambda: call.handler(request),
        lambda answer: not _is_known(call, answer, wait_seconds),
        wait_seconds,
        lambda: depends.turns(tenant, wait_seconds),
        depends.clock,
        depends.sleep,
    )


def _is_known(call: Call, answer: Answer, wait_seconds: int) -> bool:
    """Whether the answer says nothing that the caller has not read: a list that nothing was added to, or a resource
    whose tag is in ``If-None-Match``."""
    if not call.route.waits or answer.status != 200:
        return False
    if call.route.paged:
        # an empty page has a cursor, so it is answered as it is
        return bool(wait_seconds) and isinstance(answer.body, Mapping) and not answer.body["items"]
    return etag.matches(header(call.event, "if-none-match"), etag.tag(answer.version or 0, answer.digest))


def _headers(answer: Answer, *, was_let_wait: bool) -> dict[str, str]:
    headers = {} if answer.version is None else {"ETag": etag.tag(answer.version, answer.digest)}
    if answer.location is not None:
        headers["Location"] = answer.location
    return headers if was_let_wait else {**headers, "Retry-After": str(waiting.ASK_AGAIN)}


def _document(call: Call, answer: Answer, request: Request) -> dict[str, Any]:
    content = answer.body
    if content is None:
        document: dict[str, Any] = {}
    elif isinstance(content, Mapping):
        document = dict(content)
    else:
        document = content.model_dump(mode="json")
    if call.route.paged:
        following, binding = answer.next_id, call.token_binding(request.caller, request.query)
        document["next_page_token"] = None if following is None else call.pages().encode(following, **binding)
        if call.route.counted:
            document["total"] = answer.total
        if call.route.waits:
            document["cursor"] = answer.cursor
    return document


def _audit(call: Call, progress: Progress, outcome: str, answer: Answer | None, document: Any) -> bool:
    """Write the audit record; whether it was written. Of a secret that is read it comes before the secret goes out, or
    nothing does."""
    write, caller = call.dependencies.audit, progress.caller
    if not call.route.audited or write is None or progress.is_dry_run or not caller.tenant:
        return False
    if progress.is_audited or (answer is not None and answer.audited):
        return progress.is_audited
    record = AuditRecord(
        # of this moment: records are listed, and followed, in the order of their ids
        id=ids.make(ids.AUDIT, call.dependencies.clock(), call.dependencies.randomness(10)),
        time=times.to_text(call.now),
        actor=caller.actor,
        action=call.route.action,
        subject=_subject_of(call, answer, document),
        outcome=outcome,
        request_id=call.request_id,
        detail=", ".join(progress.field_names[: audit.MAX_NAMES]),
    )
    try:
        write(caller.tenant, record)
    except Exception as error:
        log_failure(call.dependencies.logger, error, call.request_id)
        if call.route.method == "GET" and answer is not None:
            raise
        return False
    return True


def _subject_of(call: Call, answer: Answer | None, document: Any) -> str:
    named = answer.subject if answer else None
    return named or audit.subject_of(call.path, call.params.values(), document)


def _failed(call: Call, progress: Progress, error: Exception) -> Reply:
    public = problems.public_error(error, guarded=call.route.if_match)
    if not isinstance(error, CallerError):
        log_failure(call.dependencies.logger, error, call.request_id)
    if not isinstance(error, Throttled):
        # A record for each would be what the limit is there to prevent.
        _audit(call, progress, public.error_type, None, None)
    if progress.held_key is not None:
        _settle_key(call, error, public, progress.held_key)
    return refusal(public, path=call.path, request_id=call.request_id)


def _settle_key(call: Call, error: Exception, public: StockyardError, held_key: HeldKey) -> None:
    """Keep a final refusal under the key; let a failure that may pass be tried again."""
    try:
        # One that depends on who asks is no answer to another person with the same key.
        if isinstance(error, CallerError) and not error.retryable and type(error) is not Forbidden:
            document = problems.document(public, instance=call.path, request_id=call.request_id)
            idempotency.finish(held_key.keys, held_key.lease, public.status, problems.headers(public), document)
        else:
            idempotency.give_up(held_key.keys, held_key.lease, call.now)
    except StockyardError as failure:
        # the lease runs out by itself; the first error is the one to answer
        log_failure(call.dependencies.logger, failure, call.request_id)


def _operation_of(document: Mapping[str, Any]) -> dict[str, str]:
    """The log's key of the operation that an answer names, or is."""
    identifier = str(document.get("operation_id") or document.get("id"))
    return {"operation_id": identifier} if identifier.startswith(f"{ids.OPERATION}_") else {}
