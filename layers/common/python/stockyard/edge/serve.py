"""One request from event to reply: identity, input, idempotency, the use case, audit; every error as a problem."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from stockyard.domain.platform import PLATFORM
from stockyard.domain.records import DONE, AuditRecord
from stockyard.domain.values import ids, times
from stockyard.edge import audit, deadline, idempotency, paths, problems, waiting
from stockyard.edge.contract import Answer, Handler, Page, Request, Route, model_of
from stockyard.edge.http import body, etag
from stockyard.edge.http import query as queries
from stockyard.edge.http.paging import DEFAULT_SIZE, PageCodec
from stockyard.edge.idempotency import IdempotencyLease, Keys, Replay
from stockyard.edge.identity import ANONYMOUS, Caller, caller_of, header
from stockyard.errors import CallerError, Forbidden, InvalidInput, MalformedBody, StockyardError, Throttled

if TYPE_CHECKING:
    from aws_lambda_powertools import Logger
    from pydantic import BaseModel


def _everybody(tenant: str) -> None:
    """No limit."""


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Dependencies of the edge: a tenant's keys and audit log, the key of page tokens, time, randomness."""

    keys: Callable[[str], Keys] | None
    audit: Callable[[str, AuditRecord], None] | None
    page_key: Callable[[], bytes] | None
    clock: Callable[[], datetime]
    randomness: Callable[[int], bytes]
    logger: Logger
    admit: Callable[[str], None] = _everybody
    """Raises ``Throttled`` when the tenant has had its share."""
    turns: waiting.Turns = waiting.no_turns
    """Lets a tenant's request wait, if not too many do."""
    questions: waiting.Turns | None = None
    """Lets a tenant's question be answered, if not too many are; None: any number is."""
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP answer; ``body`` is JSON text, but of a file."""

    status: int
    headers: Mapping[str, str]
    body: str = field(repr=False)
    encoded: bool = False
    """Whether ``body`` is in base 64, as bytes are that are no text."""


def reply(status: int, document: Mapping[str, Any], headers: Mapping[str, str], *, problem: bool = False) -> Reply:
    """``document`` as a reply that no cache keeps."""
    kind = problems.CONTENT_TYPE if problem else "application/json"
    fixed = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Content-Type": kind}
    return Reply(status, {**headers, **fixed}, json.dumps(document, separators=(",", ":")))


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


@dataclass(repr=False, eq=False)
class Call:
    """One call of one route."""

    _dependencies: Dependencies
    _route: Route
    _handler: Handler
    _event: Mapping[str, Any]
    _params: Mapping[str, str]
    _request_id: str
    _caller: Caller = ANONYMOUS
    _dry_run: bool = False
    _audit_written: bool = False
    _sent: Any = None
    _key: str | None = None
    _names: tuple[str, ...] = ()
    _lease: IdempotencyLease | None = None
    _keys: Keys | None = None
    _subject: Mapping[str, Any] = field(default_factory=dict)
    _wait: int = 0
    _may_wait: bool = True

    def __post_init__(self) -> None:
        self._path = str(self._event.get("rawPath") or self._route.path)
        self._now = self._dependencies.clock()

    def reply(self) -> Reply:
        """The reply, whatever happens. Logs one line."""
        started = time.perf_counter()
        try:
            with deadline.within(deadline.QUESTION_SECONDS) if self._route.question else nullcontext():
                result = self._run()
        except Exception as error:
            result = self._failed(error)
        self._dependencies.logger.info(
            "request",
            extra={
                "http_method": self._route.method,
                "route": self._route.path,
                "status": result.status,
                "request_id": self._request_id,
                "tenant": self._caller.tenant,
                "actor": self._caller.actor,
                "milliseconds": round((time.perf_counter() - started) * 1000, 1),
                **self._subject,
            },
        )
        return result

    def _run(self) -> Reply:
        self._identify()
        paths.check_parameters(self._params.values())
        request = self._request()
        replay = self._begin()
        if replay is not None:
            headers = {**replay.headers, "Idempotent-Replayed": "true"}
            return reply(replay.status, replay.body, headers, problem=replay.status >= 400)
        answer = self._answer(replace(request, lease=self._lease))
        if answer.content is not None:
            return Reply(*answer.content.answer(self._event))
        headers = self._headers(answer)
        if not self._route.paged and self._is_known(answer):
            return Reply(304, {**headers, "Cache-Control": "no-store"}, "")
        document = self._document(answer, request)
        self._subject = {"subject": self._subject_of(answer, document), **_operation_of(document)}
        self._audit(DONE, answer, document)
        if self._keys is not None and self._lease is not None:
            idempotency.finish(self._keys, self._lease, answer.status, headers, document)
        return reply(answer.status, document, headers)

    def _answer(self, request: Request) -> Answer:
        """Answer of the function; of a request that waits, once there is news."""
        depends = self._dependencies
        if self._route.question and depends.questions is not None:
            with depends.questions(self._caller.tenant, deadline.QUESTION_SECONDS) as allowed:
                if not allowed:
                    detail = "So many questions of the tenant are being answered as may be at a time."
                    raise Throttled(detail, retry_after=waiting.ASK_AGAIN)
                return self._handler(request)
        answer, self._may_wait = waiting.until_news(
            lambda: self._handler(request),
            lambda answer: not self._is_known(answer),
            self._wait,
            lambda: depends.turns(self._caller.tenant, self._wait),
            depends.clock,
            depends.sleep,
        )
        return answer

    def _is_known(self, answer: Answer) -> bool:
        """Whether the answer says nothing that the caller has not read: a list that nothing was added to, or a resource
        whose tag is in ``If-None-Match``."""
        if not self._route.waits or answer.status != 200:
            return False
        if self._route.paged:
            # an empty page has a cursor, so it is answered as it is
            return bool(self._wait) and isinstance(answer.body, Mapping) and not answer.body["items"]
        return etag.matches(header(self._event, "if-none-match"), etag.tag(answer.version or 0, answer.digest))

    def _headers(self, answer: Answer) -> dict[str, str]:
        headers = {} if answer.version is None else {"ETag": etag.tag(answer.version, answer.digest)}
        if answer.location is not None:
            headers["Location"] = answer.location
        return headers if self._may_wait else {**headers, "Retry-After": str(waiting.ASK_AGAIN)}

    def _identify(self) -> None:
        route = self._route
        if route.open_because:
            return
        self._caller = caller_of(self._event)
        if not self._caller.machine:
            # Agents have a rate of their own, and a cluster that is not heard loses nodes.
            self._dependencies.admit(self._caller.tenant)
        if self._caller.tenant == PLATFORM and not route.platform:
            raise Forbidden("The platform has nothing of this kind: name a tenant by the header X-Stockyard-Tenant.")
        if self._caller.roles & route.roles or (route.machine and self._caller.machine):
            return
        names = " or ".join(f"stockyard-{role.name.lower()}" for role in route.roles if role.name)
        raise Forbidden(f"This needs the role {names}." if names else "This is for a cluster's own client only.")

    def _request(self) -> Request:
        route, event = self._route, self._event
        declared = (
            *route.query,
            *(queries.PAGE if route.paged else ()),
            *((queries.DRY_RUN,) if route.dry_run else ()),
            *((queries.WAIT,) if route.waits else ()),
        )
        query = queries.read(event, declared)
        self._wait = int(query.pop("wait", 0))
        if self._wait and not (query.get("after") if route.paged else header(event, "if-none-match")):
            needed = "after, the cursor of the last answer" if route.paged else "If-None-Match, the ETag last read"
            raise InvalidInput.of_parameter("wait", f"needs {needed}: it is about what comes then.")
        self._dry_run = bool(query.pop("dry_run", False))
        size, token = query.pop("page_size", DEFAULT_SIZE), query.pop("page_token", None)
        self._key = idempotency.checked_key(header(event, "idempotency-key")) if route.idempotent else None
        version = etag.version_of(header(event, "if-match")) if route.if_match else None
        self._sent = self._body_document()
        is_lenient = route.lenient_body is not None and body.is_lenient(event)
        return Request(
            params=self._params,
            query=query,
            body=self._model(self._sent, route.lenient_body if is_lenient else route.body),
            caller=self._caller,
            request_id=self._request_id,
            if_match=version,
            dry_run=self._dry_run,
            lenient=is_lenient,
            page=Page(size, None if token is None else self._codec().decode(token, **self._place(query))),
        )

    def _body_document(self) -> Any:
        if self._route.method in ("GET", "DELETE"):
            return None
        large = self._route.large
        raw = body.raw_body(self._event, body.LARGE if large else body.LIMIT)
        if not raw:
            if self._route.body is not None and not self._route.optional:
                raise MalformedBody("A JSON body is needed.")
            return None
        kind = body.check_media_type(
            self._event, patch=self._route.method == "PATCH", yaml=self._route.yaml, gzip=large
        )
        raw = body.inflated(self._event, raw, body.LARGE) if large else raw
        if kind == body.YAML:
            from stockyard.edge.http import yaml_body  # loads a parser: only for requests that send YAML

            return yaml_body.parse(raw, body.MAX_DEPTH)
        return body.parse(raw)

    def _model(self, document: Any, reference: type[BaseModel] | str | None) -> Any:
        if reference is None:
            if document not in (None, {}):
                raise InvalidInput("This takes no body.")
            return None
        from stockyard.domain.models.base import read  # loads pydantic: only for requests that have a body

        document = {} if document is None and self._route.optional else document
        try:
            model = read(model_of(reference), document)
        except InvalidInput:
            if not (isinstance(document, Mapping) and {"apiVersion", "kind"} <= document.keys()):
                raise
            text = f"this is a {document['kind']} manifest: send it to POST /v1/apply (stockyard apply -f)"
            raise InvalidInput.at("/apiVersion", text) from None
        self._names = tuple(document) if isinstance(document, Mapping) else ()
        return model

    def _begin(self) -> Replay | None:
        if self._key is None or self._dry_run or self._dependencies.keys is None:
            return None
        self._keys = self._dependencies.keys(self._caller.tenant)
        body_digest = idempotency.digest(self._sent, self._path)
        # A cluster's own client has its own: it is answered nothing that somebody else of the tenant was, and nobody
        # takes its keys. No key has a line end.
        owner = f"{self._caller.client_id}\n" if self._caller.machine else ""
        record_id, salt = (
            f"{self._route.name}#{owner}{self._key}",
            self._dependencies.randomness(idempotency.SALT_BYTES),
        )
        lease = idempotency.begin(self._keys, record_id, body_digest, self._now, salt)
        if isinstance(lease, Replay):
            return lease
        self._lease = lease
        return None

    def _codec(self) -> PageCodec:
        if self._dependencies.page_key is None:
            raise TypeError(f"{self._route.name} pages, but its function has no page_key")
        return PageCodec(self._dependencies.page_key())

    def _place(self, query: Mapping[str, Any]) -> dict[str, Any]:
        """Values that a page's token is bound to."""
        return {"tenant": self._caller.tenant, "route": self._path, "query": query, "now": self._now}

    def _document(self, answer: Answer, request: Request) -> dict[str, Any]:
        content = answer.body
        if content is None:
            document: dict[str, Any] = {}
        elif isinstance(content, Mapping):
            document = dict(content)
        else:
            document = content.model_dump(mode="json")
        if self._route.paged:
            following = answer.next_id
            token = None if following is None else self._codec().encode(following, **self._place(request.query))
            document["next_page_token"] = token
            if self._route.waits:
                document["cursor"] = answer.cursor
        return document

    def _audit(self, outcome: str, answer: Answer | None, document: Any) -> None:
        """Write the audit record. Of a secret that is read it comes before the secret goes out, or nothing does."""
        write = self._dependencies.audit
        if not self._route.audited or write is None or self._dry_run or not self._caller.tenant:
            return
        if self._audit_written or (answer is not None and answer.audited):
            return
        record = AuditRecord(
            # of this moment: records are listed, and followed, in the order of their ids
            id=ids.make(ids.AUDIT, self._dependencies.clock(), self._dependencies.randomness(10)),
            time=times.to_text(self._now),
            actor=self._caller.actor,
            action=self._route.action,
            subject=self._subject_of(answer, document),
            outcome=outcome,
            request_id=self._request_id,
            detail=", ".join(self._names[: audit.MAX_NAMES]),
        )
        try:
            write(self._caller.tenant, record)
            self._audit_written = True
        except Exception as error:
            log_failure(self._dependencies.logger, error, self._request_id)
            if self._route.method == "GET" and answer is not None:
                raise

    def _subject_of(self, answer: Answer | None, document: Any) -> str:
        named = answer.subject if answer else None
        return named or audit.subject_of(self._path, self._params.values(), document)

    def _failed(self, error: Exception) -> Reply:
        public = problems.public_error(error, guarded=self._route.if_match)
        if not isinstance(error, CallerError):
            log_failure(self._dependencies.logger, error, self._request_id)
        if not isinstance(error, Throttled):
            # A record for each would be what the limit is there to prevent.
            self._audit(public.error_type, None, None)
        result = refusal(public, path=self._path, request_id=self._request_id)
        if self._keys is not None and self._lease is not None:
            self._settle_key(error, public, self._keys, self._lease)
        return result

    def _settle_key(self, error: Exception, public: StockyardError, keys: Keys, lease: IdempotencyLease) -> None:
        """Keep a final refusal under the key; let a failure that may pass be tried again."""
        try:
            # One that depends on who asks is no answer to another person with the same key.
            if isinstance(error, CallerError) and not error.retryable and type(error) is not Forbidden:
                document = problems.document(public, instance=self._path, request_id=self._request_id)
                idempotency.finish(keys, lease, public.status, problems.headers(public), document)
            else:
                idempotency.give_up(keys, lease, self._now)
        except StockyardError as failure:
            # the lease runs out by itself; the first error is the one to answer
            log_failure(self._dependencies.logger, failure, self._request_id)


def _operation_of(document: Mapping[str, Any]) -> dict[str, str]:
    """The log's key of the operation that an answer names, or is."""
    identifier = str(document.get("operation_id") or document.get("id"))
    return {"operation_id": identifier} if identifier.startswith(f"{ids.OPERATION}_") else {}
