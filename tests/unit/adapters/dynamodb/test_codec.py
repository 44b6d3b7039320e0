"""Records to items and back."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockyard import errors
from stockyard.adapters.dynamodb import codec, keys
from stockyard.domain.records import (
    AuditRecord,
    Cluster,
    Event,
    Fact,
    Idempotency,
    NodeClaim,
    Outbox,
    Placement,
    PlacementOption,
    PriceSheet,
    Record,
    Resource,
)

TIME = "2026-01-31T12:00:00.000Z"
EPOCH = 1769860800
LINE = Resource("clu_1/network/vpc/main", "clu_1", "network", "vpc", "main", "t", "made", "us-east-1", 1, TIME)

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**37), 10**37)
    | st.floats(1e-100, 1e100)
    | st.floats(-1e100, -1e-100)
    | st.just(0.0)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), inner, max_size=3)
    ),
    max_leaves=10,
)


def outbox(payload: dict[str, Any]) -> Outbox:
    return Outbox("out_1", "event", payload, TIME)


@given(value=json_values)
def test_json_comes_back_exactly(value: Any) -> None:
    record = outbox({"value": value})
    assert codec.from_item(Outbox, codec.to_item("acme", record)) == record


def test_the_item_has_its_keys_its_kind_and_its_schema() -> None:
    item = codec.to_item("acme", outbox({"n": 1}))
    assert item == {
        "pk": {"S": "T#acme#Outbox"},
        "sk": {"S": "out_1"},
        "kind": {"S": "Outbox"},
        "tenant": {"S": "acme"},
        "schema": {"N": "2"},
        "id": {"S": "out_1"},
        "record_kind": {"S": "event"},
        "payload": {"S": '{"n":1}'},
        "due_at": {"S": TIME},
        "version": {"N": "1"},
        "due_pk": {"S": keys.due_partition("acme", outbox({}))},
        "due_sk": {"S": TIME},
    }


def test_a_stream_image_tells_tenant_and_record() -> None:
    record = outbox({})
    assert codec.read(codec.to_item("acme", record)) == ("acme", record)
    with pytest.raises(errors.StoreError, match="Unheard"):
        codec.read({"kind": {"S": "Unheard"}})


def test_unknown_attributes_are_ignored_and_missing_ones_take_defaults() -> None:
    item = codec.to_item("acme", Fact("f", "v", TIME))
    item["later"] = {"S": "x"}
    del item["version"]
    assert codec.from_item(Fact, item) == Fact("f", "v", TIME)


def test_an_item_that_lacks_what_it_needs_is_an_error_by_name() -> None:
    item = codec.to_item("acme", Fact("f", "v", TIME))
    del item["value"]
    with pytest.raises(errors.StoreError, match="Fact f cannot be read"):
        codec.from_item(Fact, item)


def test_a_missing_attribute_of_a_field_that_may_be_none_is_none() -> None:
    event = Event("evt_1", "Cluster", "clu_1", 1, TIME, "ada", None, None, "Accepted", "ok")
    item = codec.to_item("acme", event)
    assert "before" not in item
    assert codec.from_item(Event, item) == event


@pytest.mark.parametrize(
    ("record", "ttl"),
    [
        (Event("evt_1", "Cluster", "clu_1", 1, TIME, "ada", None, None, "", ""), EPOCH + 90 * 86400),
        (AuditRecord("aud_1", TIME, "ada", "create", "clu_1", "done", "r"), EPOCH + 400 * 86400),
        (Idempotency("k", "d", "done", TIME, TIME, expires_at=EPOCH), EPOCH),
        (Fact("f", "v", TIME), None),
        (LINE, None),
        (replace(LINE, state="gone", gone_at=TIME), EPOCH + 2 * 86400),
    ],
)
def test_what_expires_and_when(record: Record, ttl: int | None) -> None:
    assert codec.to_item("acme", record).get("ttl") == (None if ttl is None else {"N": str(ttl)})


@pytest.mark.parametrize(("value", "text"), [(0.1, "0.1"), (1.0, "1"), (1e-7, "1e-07"), (1e30, str(int(1e30)))])
def test_floats_are_written_exactly(value: float, text: str) -> None:
    assert codec.encode(value) == {"N": text}


@pytest.mark.parametrize("text", ["0.0000001", "1E-7", "1e-07"])
def test_floats_are_read_in_every_form(text: str) -> None:
    item = codec.to_item("acme", outbox({}))
    item["payload"] = {"M": {"x": {"N": text}}}
    assert codec.from_item(Outbox, item).payload == {"x": 1e-7}


def test_deep_nesting_is_refused_by_name() -> None:
    value: Any = "bottom"
    for _ in range(40):
        value = [value]
    with pytest.raises(errors.InvalidInput, match="Outbox out_1 cannot be stored: it is nested"):
        codec.to_item("acme", outbox({"value": value}))


def test_no_field_of_any_record_falls_on_an_attribute_of_the_layout() -> None:
    for kind in get_args(Record):
        names = [keys.attribute(field.name) for field in fields(kind)]
        assert len(set(names)) == len(names)
        assert not {"pk", "sk", "kind", "tenant", "schema", "ttl", "due_pk", "due_sk", "all_pk", "all_sk"} & set(names)


def test_bytes_come_back_as_bytes() -> None:
    sheet = PriceSheet("eu-west-1", TIME, b"\x00\xff")
    assert codec.from_item(PriceSheet, codec.to_item("acme", sheet)) == sheet


def test_only_accepting_clusters_and_outbox_items_are_due() -> None:
    def cluster_with_status(status: str) -> Cluster:
        lease = TIME
        return Cluster("clu_1", "n", "", "k8s", "aws", 1, "n-0", status, {}, TIME, TIME, lease_expires_at=lease)

    accepting, ready = (
        codec.to_item("acme", cluster_with_status("accepting")),
        codec.to_item("acme", cluster_with_status("ready")),
    )
    assert (accepting["due_pk"], accepting["due_sk"]) == ({"S": "DUE#Cluster"}, {"S": TIME})
    assert "due_pk" not in ready
    assert ready["all_pk"] == {"S": "ALL#Cluster"}


def test_a_cluster_stored_before_drivers_has_the_driver_of_that_release() -> None:
    cluster = Cluster("clu_1", "n", "", "k8s", "aws", 1, "n-0", "ready", {}, TIME, TIME, driver="other")
    item = codec.to_item("acme", cluster)
    assert codec.from_item(Cluster, item).driver == "other"
    del item["driver"]
    assert codec.from_item(Cluster, item).driver == "ec2"
    assert codec.default(Cluster, "driver") == "ec2"


def test_documents_are_text_and_are_read_as_earlier_releases_stored_them() -> None:
    requirements = ({"key": "zone", "operator": "In", "values": ["a", "b"]}, {"key": "gpu", "operator": "Exists"})
    claim = NodeClaim("ncl_1", "workers-1", TIME, TIME, requirements=requirements, document={"größe": [1, 2.5, None]})
    item = codec.to_item("acme", claim)
    assert item["document"] == {"S": '{"größe":[1,2.5,null]}'}
    assert codec.from_item(NodeClaim, item) == claim
    item["requirements"], item["document"] = codec.encode(requirements), codec.encode(claim.document)
    assert set(item["requirements"]) == {"L"}
    assert codec.from_item(NodeClaim, item) == claim


def test_a_document_that_is_no_json_is_an_error_by_name() -> None:
    item = {**codec.to_item("acme", outbox({})), "payload": {"S": "{"}}
    with pytest.raises(errors.StoreError, match="Outbox out_1 cannot be read"):
        codec.from_item(Outbox, item)


def test_placement_options_are_read_as_the_release_before_stored_them() -> None:
    options = (
        PlacementOption("lab.small", "spot", ("a", "b"), usd_hour=None, cost=28.0),
        PlacementOption("lab.large", "on-demand", ("*",), usd_hour=0.5, cost=2.5),
    )
    placed = Placement("npr_1", "lab.small", "spot", ("a", "b"), 28.0, TIME, options=options)
    claim = NodeClaim("ncl_1", "workers-1", TIME, TIME, placement=placed)
    item = codec.to_item("acme", claim)
    stored = [
        {"type": "lab.small", "capacity_type": "spot", "zones": ["a", "b"], "usd_hour": None, "cost": 28, "more": 1},
        {"type": "lab.large", "capacity_type": "on-demand", "zones": ["*"], "usd_hour": 0.5, "cost": 2.5},
    ]
    item["placement"]["M"]["options"] = codec.encode(stored)
    assert codec.from_item(NodeClaim, item) == claim
    assert codec.from_item(NodeClaim, codec.to_item("acme", claim)) == claim
