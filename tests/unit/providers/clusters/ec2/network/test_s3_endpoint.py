"""The endpoint of S3 in a network of our own: every subnet leads to it, and a network is as good without."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import pytest

from local.aws.corrections.compute import endpoints
from stockyard.errors import PermissionDenied, VendorError, VendorTimeout
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.kinds import ec2 as ec2_kinds
from stockyard.providers.clouds.aws.kinds.base import State

ZONES = [f"us-east-1{letter}" for letter in "abc"]


def endpoint(yard: Any) -> dict[str, Any]:
    (described,) = yard.tenant().client("ec2").describe_vpc_endpoints()["VpcEndpoints"]
    return dict(described)


def tables(yard: Any) -> list[str]:
    return sorted(line.vendor_id for line in yard.ledger.lines() if line.kind == "route_table")


def test_every_subnet_leads_to_it_as_the_network_changes(yard: Any) -> None:
    yard.with_settings(zones=ZONES[:2], nat_gateways="one").ensure("network")
    described = endpoint(yard)
    assert (described["ServiceName"], described["VpcEndpointType"]) == ("com.amazonaws.us-east-1.s3", "Gateway")
    assert described["VpcId"] == yard.ledger.find("vpc", "main").vendor_id
    carried = {tag["Key"]: tag["Value"] for tag in described["Tags"]}
    assert carried["stockyard:key"] == "vpc_endpoint/s3"
    assert carried["stockyard:resource"] == yard.cluster.id
    assert (sorted(described["RouteTableIds"]), len(tables(yard))) == (tables(yard), 2)
    for settings, count in (({"nat_gateways": "per_zone", "zones": ZONES}, 4), ({"nat_gateways": "one"}, 2)):
        yard.later(120)
        yard.with_settings(**settings).ensure("network")
        assert (sorted(endpoint(yard)["RouteTableIds"]), len(tables(yard))) == (tables(yard), count)
        lines = yard.ledger.writes
        yard.ensure("network")
        assert yard.ledger.writes == lines
    yard.later(120)
    yard.delete()
    assert yard.living() == []


@contextmanager
def endpoints_raise(error: type[VendorError]) -> Iterator[None]:
    """Inside this context each call about endpoints ends so."""
    methods = {name: getattr(Calls, name) for name in ("call", "pages")}

    def raising(name: str) -> Callable[..., Any]:
        def answer(calls: Calls, service: str, operation: str, *words: Any, **parameters: Any) -> Any:
            if "vpc_endpoint" in operation:
                raise error(f"{service} {operation}: no")
            return methods[name](calls, service, operation, *words, **parameters)

        return answer

    with ExitStack() as stack:
        for name in methods:
            stack.enter_context(patch.object(Calls, name, raising(name)))
        yield


def test_an_account_that_has_no_room_or_no_right_goes_without(yard: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoints, "MOST_ENDPOINTS", 0)
    outcome = yard.ensure("network")
    assert outcome.done
    assert "without an endpoint of S3: ec2 create_vpc_endpoint: The maximum number" in outcome.message
    assert yard.ledger.find("vpc_endpoint", "s3") is None
    with endpoints_raise(PermissionDenied):
        assert "without an endpoint of S3: ec2 create_vpc_endpoint: no" in yard.ensure("network").message
    monkeypatch.setattr(endpoints, "MOST_ENDPOINTS", 1)
    assert "endpoint" not in yard.ensure("network").message, "the next change of the cluster makes it"
    assert endpoint(yard)["RouteTableIds"]


def test_a_creation_that_was_cut_off_holds_no_deletion_of_an_account_without_the_right(yard: Any) -> None:
    with endpoints_raise(VendorTimeout), pytest.raises(VendorTimeout):
        yard.ensure("network")
    assert yard.ledger.find("vpc_endpoint", "s3").state == "intended"
    with endpoints_raise(PermissionDenied):
        assert yard.ensure("network").done
        yard.later(120)
        yard.delete()
    assert (yard.living(), yard.ledger.lines()) == ([], [])


def test_a_role_that_lost_its_right_leaves_no_endpoint_behind(yard: Any) -> None:
    yard.ensure("network")
    yard.later(120)
    with endpoints_raise(PermissionDenied), pytest.raises(PermissionDenied):
        yard.delete()
    yard.delete()
    assert yard.living() == []


def test_an_endpoint_that_somebody_removed_is_made_again(yard: Any) -> None:
    yard.ensure("network")
    first = endpoint(yard)["VpcEndpointId"]
    calls = yard.provider._builder(yard.work("network")).calls
    ec2_kinds.VPC_ENDPOINT.delete(calls, first)
    ec2_kinds.VPC_ENDPOINT.delete(calls, first)
    yard.later(120)
    line = yard.ledger.find("vpc_endpoint", "s3")
    assert [part.name for part in yard.provider.gone_parts(yard.work("network"), [line])] == [f"vpc endpoint {first}"]
    yard.ensure("network")
    assert endpoint(yard)["VpcEndpointId"] != first
    assert sorted(endpoint(yard)["RouteTableIds"]) == tables(yard)


def test_a_network_of_an_earlier_release_gets_one(yard: Any) -> None:
    yard.ensure("network")
    line = yard.ledger.find("vpc_endpoint", "s3")
    ec2_kinds.VPC_ENDPOINT.delete(yard.provider._builder(yard.work("network")).calls, line.vendor_id)
    yard.ledger.all = {name: item for name, item in yard.ledger.all.items() if item.kind != "vpc_endpoint"}
    yard.ensure("network")
    assert sorted(endpoint(yard)["RouteTableIds"]) == tables(yard)


@pytest.mark.parametrize("name", ["Deleting", "deleting"])
def test_states_are_read_with_capitals_and_without(name: str) -> None:
    assert ec2_kinds.state_of({"State": name}) is State.LEAVING
