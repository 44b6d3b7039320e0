"""Steps from an event to a checked request: who calls, what was sent, and the key that it was sent with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from stockyard.domain.platform import PLATFORM
from stockyard.domain.values.frozen import dataclass
from stockyard.edge import idempotency
from stockyard.edge.call import Call, HeldKey
from stockyard.edge.contract import Page, Request, model_of
from stockyard.edge.http import body, etag
from stockyard.edge.http import query as queries
from stockyard.edge.http.paging import DEFAULT_SIZE
from stockyard.edge.idempotency import Replay
from stockyard.edge.identity import ANONYMOUS, Caller, caller_of, credential_of, header
from stockyard.errors import Forbidden, InvalidInput, MalformedBody

if TYPE_CHECKING:
    from pydantic import BaseModel


def identify(call: Call) -> Caller:
    """The caller by the claims of the token. ``Unauthorized`` for claims that name nobody, and where an open route's
    proof is none."""
    if not call.route.open_because:
        return caller_of(call.event)
    if call.route.proof is not None:
        call.route.proof(call.params, credential_of(call.event))
    return ANONYMOUS


def admit(call: Call, caller: Caller) -> None:
    """Let the caller in. ``Throttled`` for a tenant that has had its share, ``Forbidden`` for who may not call the
    route."""
    route = call.route
    if route.open_because:
        return
    if not caller.machine:
        # Agents have a rate of their own, and a cluster that is not heard loses nodes.
        call.dependencies.admit(caller.tenant)
    if caller.tenant == PLATFORM and not route.platform:
        raise Forbidden("The platform has nothing of this kind: name a tenant by the header X-Stockyard-Tenant.")
    if caller.roles & route.roles or (route.machine and caller.machine):
        return
    names = " or ".join(f"stockyard-{role.name.lower()}" for role in route.roles if role.name)
    raise Forbidden(f"This needs the role {names}." if names else "This is for a cluster's own client only.")


@dataclass(frozen=True, slots=True)
class Parameters:
    """Parameters of a request beside its body."""

    query: Mapping[str, Any]
    wait_seconds: int
    is_dry_run: bool
    page_size: int
    page_token: str | None
    counts: bool


def read_parameters(call: Call) -> Parameters:
    """The query of the request. ``InvalidInput`` names the parameter that is wrong."""
    route = call.route
    declared = (
        *route.query,
        *(queries.PAGE if route.paged else ()),
        *((queries.COUNT,) if route.counted else ()),
        *((queries.DRY_RUN,) if route.dry_run else ()),
        *((queries.WAIT,) if route.waits else ()),
    )
    query = queries.read(call.event, declared)
    wait = int(query.pop("wait", 0))
    if wait and not (query.get("after") if route.paged else header(call.event, "if-none-match")):
        needed = "after, the cursor of the last answer" if route.paged else "If-None-Match, the ETag last read"
        raise InvalidInput.of_parameter("wait", f"needs {needed}: it is about what comes then.")
    is_dry_run = bool(query.pop("dry_run", False))
    size, token = query.pop("page_size", DEFAULT_SIZE), query.pop("page_token", None)
    return Parameters(query, wait, is_dry_run, size, token, bool(query.pop("count", False)))


@dataclass(frozen=True, slots=True)
class Content:
    """Content of a request: the document that was sent, and the model that it is."""

    document: Any = field(repr=False)
    model: Any = field(repr=False)
    version: int | None
    """The version that the caller has read."""
    key: str | None
    """The idempotency key; None where none was sent, or the route takes none."""
    is_lenient: bool

    @property
    def field_names(self) -> tuple[str, ...]:
        """The names of the fields that were sent, where the body has a model."""
        return tuple(self.document) if self.model is not None and isinstance(self.document, Mapping) else ()


def read_content(call: Call) -> Content:
    """The body of the request with the headers that belong to it. ``InvalidInput`` names the fields that are wrong."""
    route, event = call.route, call.event
    key = idempotency.checked_key(header(event, "idempotency-key")) if route.idempotent else None
    version = etag.version_of(header(event, "if-match")) if route.if_match else None
    document = _document(call)
    is_lenient = route.lenient_body is not None and body.is_lenient(event)
    model = _model(call, document, route.lenient_body if is_lenient else route.body)
    return Content(document, model, version, key, is_lenient)


def request_of(call: Call, caller: Caller, parameters: Parameters, content: Content) -> Request:
    """The checked request. ``InvalidInput`` for a page's token that is none of this list."""
    token, query = parameters.page_token, parameters.query
    after = None if token is None else call.pages().decode(token, **call.token_binding(caller, query))
    return Request(
        params=call.params,
        query=query,
        body=content.model,
        caller=caller,
        request_id=call.request_id,
        if_match=content.version,
        dry_run=parameters.is_dry_run,
        lenient=content.is_lenient,
        page=Page(parameters.page_size, after, parameters.counts),
        credential=credential_of(call.event) if call.route.open_because else None,
    )


def hold_key(call: Call, caller: Caller, content: Content, *, is_dry_run: bool) -> HeldKey | Replay | None:
    """Hold the request's idempotency key; a ``Replay`` where its first request has been answered, None where there is
    no key."""
    keys_of = call.dependencies.keys
    if content.key is None or is_dry_run or keys_of is None:
        return None
    keys = keys_of(caller.tenant)
    body_digest = idempotency.digest(content.document, call.path)
    # A cluster's own client has its own: it is answered nothing that somebody else of the tenant was, and nobody
    # takes its keys. No key has a line end.
    owner = f"{caller.client_id}\n" if caller.machine else ""
    record_id, salt = (
        f"{call.route.name}#{owner}{content.key}",
        call.dependencies.randomness(idempotency.SALT_BYTES),
    )
    lease = idempotency.begin(keys, record_id, body_digest, call.now, salt)
    return lease if isinstance(lease, Replay) else HeldKey(keys, lease)


def _document(call: Call) -> Any:
    route, event = call.route, call.event
    if route.method in ("GET", "DELETE"):
        return None
    raw = body.raw_body(event, body.LARGE if route.large else body.LIMIT)
    if not raw:
        if route.body is not None and not route.optional:
            raise MalformedBody("A JSON body is needed.")
        return None
    kind = body.check_media_type(event, patch=route.method == "PATCH", yaml=route.yaml, gzip=route.large)
    raw = body.inflated(event, raw, body.LARGE) if route.large else raw
    if kind == body.YAML:
        from stockyard.edge.http import yaml_body  # loads a parser: only for requests that send YAML

        return yaml_body.parse(raw, body.MAX_DEPTH)
    return body.parse(raw)


def _model(call: Call, document: Any, reference: type[BaseModel] | str | None) -> Any:
    if reference is None:
        if document not in (None, {}):
            raise InvalidInput("This takes no body.")
        return None
    from stockyard.domain.models.base import read  # loads pydantic: only for requests that have a body

    document = {} if document is None and call.route.optional else document
    try:
        return read(model_of(reference), document)
    except InvalidInput:
        if not (isinstance(document, Mapping) and {"apiVersion", "kind"} <= document.keys()):
            raise
        text = f"this is a {document['kind']} manifest: send it to POST /v1/apply (stockyard apply -f)"
        raise InvalidInput.at("/apiVersion", text) from None
