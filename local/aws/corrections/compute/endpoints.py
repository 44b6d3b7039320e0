"""EC2: gateway endpoints have a quota and a client token, and no two of a service lead from one table. A network stays
while it has one.

AWS does not say whether a table that an endpoint uses can be deleted; here it cannot.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from moto.core.exceptions import ServiceException
from moto.core.responses import ActionResult
from moto.ec2.exceptions import DependencyViolationError
from moto.ec2.models import EC2Backend
from moto.ec2.responses import EC2Response

MOST_ENDPOINTS = 20
"""Gateway endpoints that an account has in a region until somebody asks for more."""


class EndpointRefusal(ServiceException):  # type: ignore[misc]
    """A call for an endpoint that is refused."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@contextmanager
def gateway_endpoints() -> Iterator[None]:
    """Inside this context endpoints are so."""
    replaced = {
        "create_vpc_endpoint": _create(EC2Response.create_vpc_endpoint),
        "modify_vpc_endpoint": _modify(EC2Response.modify_vpc_endpoint),
        "delete_vpc_endpoints": _delete,
    }
    with ExitStack() as stack:
        for name, call in replaced.items():
            stack.enter_context(patch.object(EC2Response, name, call))
        for name, used in (("delete_vpc", _of_vpc), ("delete_route_table", _of_table)):
            stack.enter_context(patch.object(EC2Backend, name, _holding(getattr(EC2Backend, name), used)))
        yield


def _create(original: Any) -> Any:
    def create(response: Any) -> Any:
        backend = response.ec2_backend
        token, vpc = response._get_param("ClientToken"), response._get_param("VpcId")
        for endpoint in list(backend.vpc_end_points.values()):
            if token and endpoint.client_token == token:
                if endpoint.vpc_id != vpc:
                    raise EndpointRefusal("IdempotentParameterMismatch", "The client token was used otherwise.")
                return ActionResult({"VpcEndpoint": endpoint})
        gateways = [e for e in list(backend.vpc_end_points.values()) if e.vpc_endpoint_type == "Gateway"]
        if response._get_param("VpcEndpointType") == "Gateway" and len(gateways) >= MOST_ENDPOINTS:
            raise EndpointRefusal("VpcEndpointLimitExceeded", "The maximum number of VPC endpoints has been reached.")
        return original(response)

    return create


def _modify(original: Any) -> Any:
    def modify(response: Any) -> Any:
        backend = response.ec2_backend
        (endpoint,) = backend.describe_vpc_endpoints(vpc_end_point_ids=[response._get_param("VpcEndpointId")])
        added = response._get_param("AddRouteTableIds", [])
        for other in list(backend.vpc_end_points.values()):
            shared_tables = sorted(set(added) & set(other.route_table_ids))
            if shared_tables and other.service_name == endpoint.service_name:
                text = f"route table {shared_tables[0]} already has a route to {endpoint.service_name}"
                raise EndpointRefusal("RouteAlreadyExists", text)
        for table in added:
            backend.get_route_table(table)
        return original(response)

    return modify


def _delete(response: Any) -> Any:
    """Delete the endpoints that are there; the answer names the others."""
    unsuccessful = []
    for name in response._get_param("VpcEndpointIds", []):
        if response.ec2_backend.vpc_end_points.pop(name, None) is None:
            text = f"The Vpc Endpoint Id '{name}' does not exist"
            error = {"Code": "InvalidVpcEndpointId.NotFound", "Message": text}
            unsuccessful.append({"ResourceId": name, "Error": error})
    return ActionResult({"Unsuccessful": unsuccessful})


def _holding(original: Any, used: Any) -> Any:
    def delete(backend: Any, *args: Any, **named: Any) -> Any:
        thing = str(next(iter(named.values()), "") or args[0])
        if any(used(endpoint, thing) for endpoint in list(backend.vpc_end_points.values())):
            raise DependencyViolationError(f"The resource '{thing}' has dependencies and cannot be deleted.")
        return original(backend, *args, **named)

    return delete


def _of_vpc(endpoint: Any, vpc_id: str) -> bool:
    return bool(endpoint.vpc_id == vpc_id)


def _of_table(endpoint: Any, table_id: str) -> bool:
    return table_id in endpoint.route_table_ids
