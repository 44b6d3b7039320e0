"""The declarative table of routes: one :class:`Door` per function, served through the powertools resolver."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler.api_gateway import APIGatewayHttpResolver, Response

from stockyard.edge import paths
from stockyard.edge.contract import Answer, Page, Request, Route, Use
from stockyard.edge.idempotency import Keys
from stockyard.edge.identity import Caller, Roles
from stockyard.edge.query import Query
from stockyard.edge.serve import Call, Outside, Reply, log_failure, refusal
from stockyard.errors import Internal

if TYPE_CHECKING:
    from pydantic import BaseModel

    from stockyard.domain.records import AuditRecord

__all__ = ["Answer", "Caller", "Door", "Page", "Query", "Request", "Roles", "Route"]


def _now() -> datetime:
    return datetime.now(UTC)


class Door:
    """The HTTP door of one function.

    ``keys`` and ``audit`` reach the caller's tenant, ``page_key`` is the secret of page tokens; all are called when a
    request needs them, so that a cold start builds nothing. ``clock`` and ``randomness`` are given by tests.
    """

    def __init__(
        self,
        name: str,
        *,
        keys: Callable[[Caller], Keys] | None = None,
        audit: Callable[[Caller, AuditRecord], None] | None = None,
        page_key: Callable[[], bytes] | None = None,
        clock: Callable[[], datetime] = _now,
        randomness: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self.name = name
        self.routes: list[Route] = []
        self._outside = Outside(keys, audit, page_key, clock, randomness, Logger(service=name))
        self._resolver = APIGatewayHttpResolver(enable_validation=False)
        self._resolver.not_found(self._not_found)

    def route(
        self,
        method: str,
        path: str,
        *,
        summary: str,
        action: str,
        roles: Roles = Roles.NONE,
        machine: bool = False,
        token: bool = True,
        body: type[BaseModel] | str | None = None,
        answers: Mapping[int, type[BaseModel] | str | None],
        query: tuple[Query, ...] = (),
        paged: bool = False,
        idempotent: bool = False,
        if_match: bool = False,
        dry_run: bool = False,
        audited: bool | None = None,
        yaml: bool = False,
        large: bool = False,
        platform: bool = False,
        description: str = "",
    ) -> Callable[[Use], Use]:
        """Declare a route; see :class:`stockyard.edge.contract.Route`. Models may be named ``module:Class``."""

        def register(use: Use) -> Use:
            route = Route(
                method=method,
                path=path,
                use=use,
                summary=summary,
                action=action,
                roles=roles,
                machine=machine,
                token=token,
                body=body,
                answers=dict(answers),
                query=query,
                paged=paged,
                idempotent=idempotent,
                if_match=if_match,
                dry_run=dry_run,
                audited=method != "GET" if audited is None else audited,
                yaml=yaml,
                large=large,
                platform=platform,
                tag=path.split("/")[2],
                description=description,
            )
            self.add(route)
            return use

        return register

    def add(self, route: Route) -> None:
        """Serve ``route``. ``ValueError`` when nobody could ever call it, or when the table of paths lacks it."""
        if route.token and not route.roles and not route.machine:
            raise ValueError(f"{route.name} lets nobody in")
        if route.method not in paths.METHODS.get(route.path, ()):
            raise ValueError(f"{route.name} is not in the table of paths")

        def serve(**params: str) -> Response[str]:
            event = self._resolver.current_event.raw_event
            return _response(Call(self._outside, route, event, params, _request_id(event)).reply())

        self.routes.append(route)
        rule = route.path.replace("{", "<").replace("}", ">")
        self._resolver.route(rule, method=route.method)(serve)

    def handle(self, event: dict[str, Any], context: Any) -> dict[str, Any]:
        """The answer to an HTTP API event (payload 2.0); a problem document, whatever happens."""
        try:
            return self._resolver.resolve(event, context)
        except Exception as error:
            # an event that is not one of the gateway's
            request_id = str(getattr(context, "aws_request_id", ""))
            log_failure(self._outside.logger, error, request_id)
            failed = refusal(Internal("The request could not be read."), path="", request_id=request_id)
            headers = {**failed.headers, "Content-Type": failed.content_type}
            return {"statusCode": failed.status, "headers": headers, "body": failed.body, "isBase64Encoded": False}

    def _not_found(self, _: Exception) -> Response[str]:
        event = self._resolver.current_event.raw_event
        path = str(event.get("rawPath", ""))
        error, headers = paths.unserved(_method(event), path)
        return _response(refusal(error, path=path, request_id=_request_id(event), headers=headers))


def _method(event: Mapping[str, Any]) -> str:
    return str(((event.get("requestContext") or {}).get("http") or {}).get("method", "")).upper()


def _request_id(event: Mapping[str, Any]) -> str:
    return str((event.get("requestContext") or {}).get("requestId", ""))


def _response(given: Reply) -> Response[str]:
    return Response(given.status, content_type=given.content_type, headers=dict(given.headers), body=given.body)
