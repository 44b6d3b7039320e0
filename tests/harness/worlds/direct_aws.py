"""Calls to moto's EC2, load balancing, IAM and STS without HTTP: same parameters, answers and errors, but fast.

``direct_aws`` replaces botocore's work on a call (serialize, sign, send, parse) and moto's (parse, serialize to XML).
Everything between is moto's own code, with the corrections that are installed. A test compares the answers with those
on the wire.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC
from functools import cache, cached_property
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from botocore.client import BaseClient
from botocore.exceptions import ParamValidationError
from botocore.utils import parse_to_aware_datetime
from botocore.validate import ParamValidator
from moto.autoscaling.responses import AutoScalingResponse
from moto.core.errors import get_error_model
from moto.core.responses import ActionContext, BaseResponse
from moto.core.serialize import AttributePickerContext, ResponseSerializer, XFormedAttributePicker
from moto.core.utils import MISSING, get_service_model, get_value
from moto.ec2.responses import EC2Response
from moto.elbv2.responses import ELBV2Response
from moto.iam.responses import IamResponse
from moto.sts.responses import TokenResponse
from moto.utilities.utils import get_partition

from local.aws.corrections import file_systems, lifecycle_policies
from local.aws.corrections.compute.balancers import fifty_tags
from local.aws.corrections.compute.capacity_reservations import capacity_reservations
from local.aws.corrections.compute.endpoints import gateway_endpoints
from local.aws.corrections.compute.interfaces import (
    dependencies_hold,
    interfaces_go_with_gateways,
    names_end_with_machines,
    tagged_interfaces,
)
from local.aws.corrections.compute.placement_groups import placement_groups
from local.aws.corrections.compute.shared_networks import shared_networks
from local.aws.corrections.eks import eks
from local.aws.corrections.eks.scaling_calls import scaling_groups
from local.aws.corrections.managed_policies import attachable_policies
from local.aws.corrections.quick.answers import quick_tags
from local.aws.corrections.quick.offerings import quick_offerings
from local.aws.corrections.quotas import usual_quotas
from local.aws.corrections.rest_services import Imitation, ServiceRefusal
from local.aws.corrections.roles import lasting_principals


class _Scaling(AutoScalingResponse):  # type: ignore[misc]
    """moto's own without the checksum of the text, which there is none of."""

    call_action = BaseResponse.call_action


RESPONSES: Mapping[str, Any] = {
    "autoscaling": _Scaling,
    "ec2": EC2Response,
    "elbv2": ELBV2Response,
    "iam": IamResponse,
    "sts": TokenResponse,
}
IMITATIONS: Mapping[str, Imitation] = {"efs": file_systems.answer, "eks": eks.answer}
ABSENT = object()
"""Stands for values that the protocol cannot express: an empty structure, and an empty list."""


@contextmanager
def direct_aws(*, wire: bool = False) -> Iterator[None]:
    """Inside this context every boto3 client of these services calls moto directly. It needs ``mock_aws``.

    With ``wire`` only what moto does not have is called so: the Data Lifecycle Manager, EKS and EFS.
    """
    original: Any = BaseClient._make_api_call  # type: ignore[attr-defined]

    def call(client: Any, operation: str, parameters: Mapping[str, Any]) -> Any:
        service = client.meta.service_model.service_name
        if service in RESPONSES and not wire:
            return answer(client, operation, parameters)
        if service == "dlm":
            return _lifecycle(client, operation, parameters)
        if service in IMITATIONS:
            return _imitated(client, operation, parameters)
        return original(client, operation, parameters)

    with (
        patch.object(BaseClient, "_make_api_call", call),
        quick_offerings(),
        quick_tags(),
        tagged_interfaces(),
        names_end_with_machines(),
        dependencies_hold(),
        interfaces_go_with_gateways(),
        capacity_reservations(),
        placement_groups(),
        gateway_endpoints(),
        shared_networks(),
        scaling_groups(),
        fifty_tags(),
        attachable_policies(),
        lasting_principals(),
        usual_quotas(),
    ):
        yield


def answer(client: Any, operation: str, parameters: Mapping[str, Any]) -> Any:
    """Answer of moto to ``client``. Raises botocore's ``ClientError`` and ``ParamValidationError``."""
    model = client.meta.service_model.operation_model(operation)
    context = {"client_region": client.meta.region_name, "client_config": client.meta.config, "auth_type": None}
    sent = client._emit_api_params(api_params=dict(parameters), operation_model=model, context=context)
    if model.input_shape is not None and (faults := ParamValidator().validate(sent, model.input_shape)).has_errors():
        raise ParamValidationError(report=faults.generate_report())
    handler = _handler(client, operation, sent, model)
    status, _, body = handler.call_action()
    if int(status) >= 300:
        code, message = handler.refusal or _legacy(body)
        response = {"Error": {"Code": code, "Message": message, "Type": "Sender"}, "ResponseMetadata": _meta(status)}
        raise client.exceptions.from_code(code)(response, operation)
    parsed = {**(body if isinstance(body, dict) else {}), "ResponseMetadata": _meta(status)}
    service = client.meta.service_model.service_id.hyphenize()
    client.meta.events.emit(
        f"after-call.{service}.{operation}",
        http_response=SimpleNamespace(status_code=int(status)),
        parsed=parsed,
        model=model,
        context=context,
    )
    return parsed


def _lifecycle(client: Any, operation: str, parameters: Mapping[str, Any]) -> Any:
    """Answer of our imitation of the Data Lifecycle Manager, which moto does not have."""
    model = client.meta.service_model.operation_model(operation)
    if (faults := ParamValidator().validate(parameters, model.input_shape)).has_errors():
        raise ParamValidationError(report=faults.generate_report())
    key = client._request_signer._credentials.access_key
    try:
        body = lifecycle_policies.answer(key, client.meta.region_name, operation, parameters)
    except lifecycle_policies.NoSuchPolicy as error:
        response = {"Error": {"Code": error.code, "Message": str(error)}, "ResponseMetadata": _meta(error.status)}
        raise client.exceptions.from_code(error.code)(response, operation) from error
    return {**body, "ResponseMetadata": _meta(200)}


def _imitated(client: Any, operation: str, parameters: Mapping[str, Any]) -> Any:
    """Answer of one of our imitations of a service."""
    model = client.meta.service_model.operation_model(operation)
    if model.input_shape and (faults := ParamValidator().validate(parameters, model.input_shape)).has_errors():
        raise ParamValidationError(report=faults.generate_report())
    imitation = IMITATIONS[client.meta.service_model.service_name]
    key = client._request_signer._credentials.access_key
    try:
        body = imitation(key, client.meta.region_name, operation, parameters)
    except ServiceRefusal as error:
        fault = {"Code": error.code, "Message": str(error)}
        response = {"Error": fault, **error.fields, "ResponseMetadata": _meta(error.status)}
        raise client.exceptions.from_code(error.code)(response, operation) from error
    return {**body, "ResponseMetadata": _meta(200)}


def _meta(status: Any) -> dict[str, Any]:
    return {"HTTPStatusCode": int(status), "RequestId": "direct", "HTTPHeaders": {}, "RetryAttempts": 0}


def _legacy(body: Any) -> tuple[str, str]:
    """Code and message of an error that moto itself writes as text."""
    code, message = (re.search(f"<{name}>(.*?)</{name}>", str(body), re.DOTALL) for name in ("Code", "Message"))
    return (code.group(1) if code else "Unknown", message.group(1) if message else "")


def _handler(client: Any, operation: str, parameters: Mapping[str, Any], model: Any) -> Any:
    """moto's response object for a request that is not sent, with the fields that moto and our corrections read."""
    service = str(client.meta.service_model.service_name)
    signer = client._request_signer
    region = signer.region_name or client.meta.region_name
    keys = signer._credentials
    handler = RESPONSES[service]()
    handler.headers = {"Authorization": f"AWS4-HMAC-SHA256 Credential={keys.access_key}/20260101/{region}/{service}/"}
    if keys.token:
        handler.headers["X-Amz-Security-Token"] = keys.token
    handler.querystring = {"Action": [operation], **{name: [value] for name, value in parameters.items()}}
    handler.data = handler.querystring
    handler.params = _sent(_moto_model(service, operation).input_shape, parameters)
    handler.params = {} if handler.params is ABSENT else handler.params
    handler.body = handler.normalized_request = None
    handler.uri_match, handler.response_headers = {}, {}
    handler.region, handler.partition = region, get_partition(region)
    handler.access_key = handler.get_access_key()
    handler.current_account = handler.get_current_account()
    handler.refusal = None
    handler.serialized = lambda result: _serialized(handler, service, operation, result)
    return handler


@cache
def _moto_model(service: str, operation: str) -> Any:
    return get_service_model(service).operation_model(operation)


def _serialized(handler: Any, service: str, operation: str, result: Any) -> tuple[int, dict[str, str], Any]:
    """Replaces ``BaseResponse.serialized``: returns the answer as botocore would parse it."""
    model = _moto_model(service, operation)
    context = ActionContext(model.service_model, model, DirectSerializer, handler)
    status, headers, body = result.execute_result(context)
    handler.refusal = body if status >= 300 else None
    # Corrections search for the code as in XML.
    return status, headers, f"<Code>{body[0]}</Code>" if handler.refusal else body


class DirectSerializer(ResponseSerializer):  # type: ignore[misc]
    """Converts moto's result to what botocore's parser would return, and an error to its code and message."""

    def serialize(self, result: Any) -> Any:
        """See ``ResponseSerializer``."""
        if isinstance(result, Exception):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # The service's model does not have every code.
                shape = get_error_model(result, self.service_model)
            status = shape.metadata.get("error", {}).get("httpStatusCode", 400)
            message = getattr(result, "message", "") or None  # as botocore reads an empty element
            return {"status_code": status, "headers": {}, "body": (shape.error_code, message)}
        body: Any = {}
        if self.operation_model.output_shape is not None and result is not None:
            transformers = self._value_picker.response_transformers
            node = _plan(self.operation_model, id(transformers), len(transformers))
            body = node.convert(result, transformers)
        return {"status_code": 200, "headers": {}, "body": body}


_plans: dict[tuple[int, int, int], _Node] = {}


def _plan(model: Any, transformers: int, size: int) -> _Node:
    key = id(model), transformers, size
    if key not in _plans:
        _plans[key] = _Node(model, model.output_shape, f"{model.name}.{model.output_shape.name}")
    return _plans[key]


class _Node:
    """A shape at its path in an answer. It finds once for each class which attribute has the value."""

    def __init__(self, model: Any, shape: Any, path: str, name: str = "") -> None:
        self._model, self.shape, self._path, self._name = model, shape, path, name
        self._keys: dict[type, list[str]] = {}
        self._transformer: str | None = None
        self._looked = False
        kind = f"_{shape.type_name}"
        self.convert: Callable[[Any, Mapping[str, Any]], Any] = getattr(self, kind, self._plain)

    @cached_property
    def _members(self) -> list[tuple[str, _Node]]:
        members = []
        for name, shape in self.shape.members.items():
            shape.parent = self.shape
            members.append((name, _Node(self._model, shape, f"{self._path}.{name}", name)))
        return members

    @cached_property
    def _item(self) -> _Node:
        shape = self.shape.member if self.shape.type_name == "list" else self.shape.value
        name = shape.name if self.shape.type_name == "list" else "value"
        return _Node(self._model, shape, f"{self._path}.{name}")

    def pick(self, owner: Any, transformers: Mapping[str, Any]) -> Any:
        """The member's value in an object of moto, or None."""
        keys = self._keys.get(type(owner))
        if keys is None:
            keys = self._keys[type(owner)] = self._possible_keys(owner)
        value = None
        for key in keys:
            attribute = get_value(owner, key, MISSING)
            if attribute is not MISSING:
                value = attribute
                break
        if not self._looked:
            self._transformer = next((path for path in transformers if self._path.endswith(path)), None)
            self._looked = True
        return transformers[self._transformer](value) if self._transformer else value

    def _possible_keys(self, owner: Any) -> list[str]:
        service = self._model.service_model
        context = AttributePickerContext(owner, self._name, self.shape, self._model, service, "")
        return list(dict.fromkeys(XFormedAttributePicker().get_possible_keys(context)))

    def _structure(self, value: Any, transformers: Mapping[str, Any]) -> Any:
        if value is None:
            return ABSENT
        members = {}
        for name, node in self._members:
            member = node.pick(value, transformers)
            if member is not None:
                converted = node.convert(member, transformers)
                if converted is not ABSENT:
                    members[name] = converted
        return members

    def _list(self, value: Any, transformers: Mapping[str, Any]) -> Any:
        items = [self._item.convert(item, transformers) for item in value]
        items = [item for item in items if item is not ABSENT and item != {}]
        return ABSENT if not items and self.shape.is_flattened else items

    def _map(self, value: Any, transformers: Mapping[str, Any]) -> Any:
        return {str(key): self._item.convert(item, transformers) for key, item in value.items()}

    def _timestamp(self, value: Any, _transformers: Mapping[str, Any]) -> Any:
        return parse_to_aware_datetime(value)

    def _blob(self, value: Any, _transformers: Mapping[str, Any]) -> Any:
        return value.encode() if isinstance(value, str) else value

    def _boolean(self, value: Any, _transformers: Mapping[str, Any]) -> Any:
        return value is True or str(value).lower() == "true"

    def _integer(self, value: Any, _transformers: Mapping[str, Any]) -> Any:
        return int(value)

    _long = _integer

    def _float(self, value: Any, _transformers: Mapping[str, Any]) -> Any:
        return float(value)

    _double = _float

    def _plain(self, value: Any, _transformers: Mapping[str, Any]) -> Any:
        return str(value)


def _sent(shape: Any, value: Any) -> Any:
    """Parameters as moto would have parsed them from the query."""
    parts: Any
    match shape.type_name if shape is not None else "structure":
        case "structure":
            parts = dict(_sent_members(shape, value)) or ABSENT
        case "list":
            parts = [_sent(shape.member, item) for item in value] or ABSENT
        case "map":
            parts = {key: _sent(shape.value, item) for key, item in value.items()} or ABSENT
        case "timestamp":
            parts = parse_to_aware_datetime(value).astimezone(UTC).replace(tzinfo=None)
        case "string":
            parts = str(value)
        case _:
            parts = value
    return parts


def _sent_members(shape: Any, value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, member in shape.members.items() if shape is not None else ():
        if value.get(name) is not None:
            converted = _sent(member, value[name])
            if converted is not ABSENT:
                yield name, converted
        elif "default" in member.metadata and member.type_name not in ("structure", "list", "map"):
            yield name, member.metadata["default"]
