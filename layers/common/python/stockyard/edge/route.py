"""The routes of one function, and who serves each: one :class:`HttpFunction` per Lambda function."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from aws_lambda_powertools import Logger

from stockyard.edge import paths
from stockyard.edge.call import Call, Dependencies
from stockyard.edge.contract import Answer, Handler, Page, Request, Route
from stockyard.edge.http.query import Query
from stockyard.edge.idempotency import Keys
from stockyard.edge.identity import Caller, Roles
from stockyard.edge.logs import logged
from stockyard.edge.replies import Reply, log_failure, refusal
from stockyard.edge.serve import serve
from stockyard.edge.waiting import Turns
from stockyard.errors import Forbidden, Internal

if TYPE_CHECKING:
    from stockyard.domain.records import AuditRecord

__all__ = ["Answer", "Caller", "HttpFunction", "Page", "Query", "Request", "Roles", "Route"]

P = ParamSpec("P")
Served = TypeVar("Served", bound=Callable[..., Answer])
"""The function that serves a route: of the request, and of what else its parameters name."""


def _now() -> datetime:
    return datetime.now(UTC)


def _declaring(route: Callable[P, Route]) -> Callable[Concatenate[HttpFunction, P], Callable[[Served], Served]]:
    """A decorator method that takes what ``route`` takes, so that a route's fields are written once."""

    def declare(function: HttpFunction, /, *args: P.args, **kwargs: P.kwargs) -> Callable[[Served], Served]:
        declared = route(*args, **kwargs)

        def register(handler: Served) -> Served:
            action = declared.action or handler.__name__.title().replace("_", "")
            first, _, following = (handler.__doc__ or "").partition(".")
            text = " ".join(f"{following} {declared.description}".split())
            full = replace(declared, action=action, summary=declared.summary or first, description=text)
            function.add(full, function.with_parameters(full, handler))
            return handler

        return register

    return declare


class HttpFunction:
    """The HTTP side of one function.

    ``keys`` and ``audit`` reach the caller's tenant, ``page_key`` is the secret of page tokens; all are called when a
    request needs them, so that a cold start builds nothing. ``admit`` raises when a tenant has had its share,
    ``origin`` when a request did not come the way it must. ``turns`` lets requests wait for news, ``questions`` lets
    questions be answered. ``services`` gives what use cases of the caller's tenant need, ``finders`` find what a
    request is about, by the name of a handler's parameter. ``clock``, ``sleep`` and ``randomness`` are given by tests.
    """

    def __init__(
        self,
        name: str,
        *,
        keys: Callable[[str], Keys] | None = None,
        audit: Callable[[str, AuditRecord], None] | None = None,
        page_key: Callable[[], bytes] | None = None,
        clock: Callable[[], datetime] = _now,
        randomness: Callable[[int], bytes] = os.urandom,
        admit: Callable[[str], None] | None = None,
        origin: Callable[[Mapping[str, Any]], None] | None = None,
        turns: Turns | None = None,
        questions: Turns | None = None,
        services: Callable[[Request], Any] | None = None,
        finders: Mapping[str, Callable[[Request, Any], Any]] | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.name = name
        self.routes: list[Route] = []
        self.logger = Logger(service=name)
        self.lambda_handler = logged(self.logger)(self.handle)
        optional: dict[str, Any] = {"admit": admit, "turns": turns, "questions": questions}
        more = {name: value for name, value in optional.items() if value is not None}
        self._dependencies = Dependencies(keys, audit, page_key, clock, randomness, self.logger, sleep=sleep, **more)
        self._origin = origin
        self._services, self._finders = services, finders or {}
        self._table: list[tuple[re.Pattern[str], Route, Handler]] = []

    route = _declaring(Route)
    """Declare a route and decorate the function that serves it; see :class:`stockyard.edge.contract.Route`."""

    def add(self, route: Route, handler: Handler) -> None:
        """Serve ``route`` by ``handler``. ``ValueError`` when nobody could ever call it."""
        if not (route.open_because or route.roles or route.machine):
            raise ValueError(f"{route.name} lets nobody in")
        self.routes.append(route)
        self._table.append((paths.pattern(route.path), route, handler))

    def with_parameters(self, route: Route, handler: Callable[..., Answer]) -> Handler:
        """``handler`` as a function of the request alone: its other parameters are the caller's ``services``, and what
        the request is about. ``TypeError`` for a parameter that nothing is known of, or where nobody has called."""
        code = handler.__code__
        optional = len(handler.__defaults__ or ())
        names, services = code.co_varnames[1 : code.co_argcount - optional], self._services
        if not names:
            return handler
        unknown = [name for name in names if name != "services" and name not in self._finders]
        if unknown or services is None or route.open_because:
            raise TypeError(f"{route.name}: its handler cannot be given {', '.join(unknown or names)}")

        def answer(request: Request) -> Answer:
            own = services(request)
            arguments = (own if name == "services" else self._finders[name](request, own) for name in names)
            return handler(request, *arguments)

        return answer

    def handle(self, event: Mapping[str, Any], context: Any) -> dict[str, Any]:
        """The answer to an HTTP API event (payload 2.0); a problem document, whatever happens."""
        try:
            reply = self._reply(event)
        except Exception as error:
            # an event that is not one of the gateway's
            request_id = str(getattr(context, "aws_request_id", ""))
            log_failure(self.logger, error, request_id)
            reply = refusal(Internal("The request could not be read."), path="", request_id=request_id)
        return {
            "statusCode": reply.status,
            "headers": reply.headers,
            "body": reply.body,
            "isBase64Encoded": reply.encoded,
        }

    def _reply(self, event: Mapping[str, Any]) -> Reply:
        context, path = event["requestContext"], str(event["rawPath"])
        method, request_id = str(context["http"]["method"]).upper(), str(context.get("requestId", ""))
        if self._origin is not None:
            try:
                self._origin(event)
            except Forbidden as forbidden:
                self.logger.warning("request around the distribution", extra={"request_id": request_id})
                return refusal(forbidden, path=path, request_id=request_id)
        for pattern, route, handler in self._table:
            match = pattern.fullmatch(path) if route.method == method else None
            # The gateway has matched the path as it was sent, here it is decoded: only what both agree on is served.
            if match and event.get("routeKey") == route.name:
                params, now = match.groupdict(), self._dependencies.clock()
                return serve(Call(self._dependencies, route, handler, event, params, request_id, now))
        error, headers = paths.unserved(method, path)
        return refusal(error, path=path, request_id=request_id, headers=headers)
