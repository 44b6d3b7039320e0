"""The table is asked at each call of a session in a tenant's account, before the service answers.

A refusal looks as AWS's own: by the service's error code, with the action and the resource; what a service asks in the
caller's name is told as that service tells it. Roles of services are made by the call that uses the service first.
"""

from __future__ import annotations

import json
import re
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch
from xml.sax.saxutils import escape

from moto.core.exceptions import ServiceException
from moto.core.responses import ActionResult, BaseResponse
from moto.iam.models import iam_backends
from moto.moto_server.werkzeug_app import DomainDispatcherApplication
from moto.s3.responses import S3Response

from local.aws.corrections.rest_services import REFUSALS, ServiceRefusal
from local.aws.permissions import linked, s3_requests, table
from local.aws.permissions.account import Account, Settings
from local.aws.permissions.calls import Call
from local.aws.permissions.policies import Ask, denied_by
from local.aws.permissions.sessions import Session, Sessions

CODES: Mapping[str, tuple[str, int]] = {
    **dict.fromkeys(("autoscaling", "elasticloadbalancing", "iam", "s3", "sts"), ("AccessDenied", 403)),
    **dict.fromkeys(("dlm", "eks", "elasticfilesystem"), ("AccessDeniedException", 403)),
    **dict.fromkeys(("codebuild", "logs", "servicequotas", "ssm"), ("AccessDeniedException", 400)),
    "ec2": ("UnauthorizedOperation", 403),
}
"""Prefix of a service's actions -> code and status of its refusals."""
_S3 = re.compile(r"Credential=([^/]+)/\d{8}/([^/]+)/s3/")


@dataclass(frozen=True)
class Refused:
    """Refusal of a call by a service. ``is_in_answer``: the call succeeds, and its answer says so."""

    code: str
    status: int
    message: str
    is_in_answer: bool = False


class Refusal(ServiceException):  # type: ignore[misc]
    """A refusal, as moto writes errors."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.message)
        self.code = refused.code


@dataclass
class Guard:
    """Asks the table. ``is_asked``: of which accounts; ``record``: a file for each check, once, or None."""

    is_asked: Callable[[str], bool]
    settings: Settings = field(default_factory=Settings)
    record: Path | None = None
    variants: Mapping[str, Settings] = field(default_factory=dict)
    """Settings of accounts that differ from the usual ones, by number."""
    _sessions: Sessions = field(default_factory=Sessions)
    _recorded: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def refusal(
        self, access_key: str, region: str, service: str, operation: str, parameters: Mapping[str, Any]
    ) -> Refused | None:
        """Refusal of the call; None for an allowed one."""
        session = self._sessions.of(access_key)
        if session is None or not self.is_asked(session.account):
            return None
        call = Call(service, operation, parameters, session.account, region)
        if session.is_of_service and call.action not in table.OF_CLUSTERS:
            return None
        code, status = CODES.get(service, ("AccessDenied", 403))
        settings = self.variants.get(session.account, self.settings)
        try:
            asks = table.asks(call, Account(session.account, region, settings))
        except table.NoRow as error:
            return Refused(code, status, str(error))
        for ask in asks:
            reason = session.refuses(ask)
            if denied_by(settings.guardrails, ask):
                reason = "with an explicit deny in a service control policy"
            self._write(session, ask, is_refused=bool(reason))
            if reason:
                return _refused(session, ask, reason, code, status)
        for ask in asks:
            if ask.action == "iam:CreateServiceLinkedRole":
                make_linked_role(session.account, str(ask.context["iam:AWSServiceName"]))
        return None

    def _write(self, session: Session, ask: Ask, *, is_refused: bool) -> None:
        if self.record is None:
            return
        line = json.dumps(
            {
                "role": session.role,
                "action": ask.action,
                "resource": ask.resource,
                "context": ask.context,
                "refused": is_refused,
            }
        )
        with self._lock:
            if line in self._recorded:
                return
            self._recorded.add(line)
            with self.record.open("a", encoding="utf-8") as file:
                file.write(line + "\n")


def make_linked_role(account: str, service: str) -> None:
    """Give the account the role of a service, unless it has it."""
    backend, name = iam_backends[account]["aws"], linked.LINKED[service]
    if any(role.name == name for role in list(backend.roles.values())):
        return
    trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": service}}
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    backend.create_role(name, document, linked.path(service), None, "", [], "3600", linked_service=service)


def _refused(session: Session, ask: Ask, reason: str, code: str, status: int) -> Refused:
    resource_text = "" if ask.resource == "*" else f" on resource: {ask.resource}"
    text = f"User: {session.arn} is not authorized to perform: {ask.action}{resource_text} {reason}"
    if ask.wording is not None:
        return Refused(ask.wording.code, 400, f"{ask.wording.message} {text}", ask.wording.is_in_answer)
    if code == "UnauthorizedOperation":
        text = f"You are not authorized to perform this operation. {text}."
    return Refused(code, status, text)


# --- where calls arrive -----------------------------------------------------------------------------------------------


@contextmanager
def asked_permissions(guard: Guard) -> Iterator[None]:
    """Inside this context moto's server, and the services beside it, answer what the guard does not refuse."""
    original, dispatch = BaseResponse.call_action, DomainDispatcherApplication.__call__

    def call_action(response: Any) -> Any:
        service = table.prefix(str(response.service_name))
        if isinstance(response, S3Response) or not _is_session(response.get_access_key()):
            return original(response)
        refused = guard.refusal(
            response.get_access_key(), response.region, service, response._get_action(), _parameters(response)
        )
        return original(response) if refused is None else _answer(response, refused)

    def refusing(access_key: str, region: str, action: str, parameters: Mapping[str, Any]) -> None:
        service, _, operation = action.partition(":")
        refused = guard.refusal(access_key, region, service, operation, parameters)
        if refused is not None:
            raise ServiceRefusal(refused.code, refused.status, refused.message)

    def to_s3(application: Any, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        signed = _S3.search(environ.get("HTTP_AUTHORIZATION", ""))
        if signed is not None and _is_session(signed[1]):
            refused = guard.refusal(signed[1], signed[2], "s3", *s3_requests.request(environ))
            if refused is not None:
                start_response(f"{refused.status} Forbidden", [("Content-Type", "application/xml")])
                text = f"<Error><Code>{refused.code}</Code><Message>{escape(refused.message)}</Message></Error>"
                return [text.encode()]
        passed: Iterable[bytes] = dispatch(application, environ, start_response)
        return passed

    REFUSALS.append(refusing)
    with ExitStack() as stack:
        stack.callback(REFUSALS.remove, refusing)
        stack.enter_context(patch.object(BaseResponse, "call_action", call_action))
        stack.enter_context(patch.object(DomainDispatcherApplication, "__call__", to_s3))
        yield


def _is_session(access_key: str) -> bool:
    return access_key.startswith("ASIA")


def _parameters(response: Any) -> Mapping[str, Any]:
    """The parameters as boto3 has them."""
    if response.automated_parameter_parsing:
        parameters = response.params
        return dict(parameters.original_dict() if hasattr(parameters, "original_dict") else parameters)
    return dict(json.loads(response.body or "{}"))


def _answer(response: Any, refused: Refused) -> Any:
    if refused.is_in_answer:
        overrides = [
            {"LaunchTemplateSpecification": config["LaunchTemplateSpecification"], "Overrides": override}
            for config in response._get_param("LaunchTemplateConfigs", [])
            for override in config.get("Overrides") or [{}]
        ]
        error = {"ErrorCode": refused.code, "ErrorMessage": refused.message}
        errors = [{"LaunchTemplateAndOverrides": override, **error} for override in overrides]
        result = ActionResult({"FleetId": "fleet-none", "Instances": [], "Errors": errors})
        return response.serialized(result)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the services' models do not have every code
        _, headers, body = response.serialized(ActionResult(Refusal(refused)))
    headers["status"] = refused.status
    return refused.status, headers, body
