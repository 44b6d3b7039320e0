"""Resources: paths, pages, ETags, plans, operations behind a 202."""

from __future__ import annotations

import pytest

from stockyard_client import ApiError
from stockyard_client.errors import UnexpectedAnswer


def test_pages_are_followed_to_the_end(api, client, cluster_document):
    first = {"items": [cluster_document(name="a"), cluster_document(name="b")], "next_page_token": "p2"}
    api.answer("GET", "/v1/clusters", first)
    api.answer("GET", "/v1/clusters", {"items": [cluster_document(name="c")], "next_page_token": None})
    assert [cluster.name for cluster in client.clusters.list(page_size=2)] == ["a", "b", "c"]
    assert [dict(request.url.params) for request in api.requests] == [
        {"page_size": "2"},
        {"page_size": "2", "page_token": "p2"},
    ]


def test_pages_are_fetched_only_when_needed(api, client, cluster_document):
    api.answer("GET", "/v1/clusters", {"items": [cluster_document()], "next_page_token": "more"})
    next(client.clusters.list())
    assert len(api.requests) == 1


def test_update_of_a_record_sends_the_etag_it_came_with(api, client, cluster_document):
    api.answer("GET", "/v1/clusters/demo", cluster_document(), ETag='"v-3"')
    api.answer("PATCH", "/v1/clusters/clu_01", cluster_document(version=4), ETag='"v-4"')
    changed = client.clusters.update(client.clusters.get("demo"), {"description": "new"})
    assert api.requests[-1].headers["If-Match"] == '"v-3"'
    assert api.bodies("PATCH") == [{"description": "new"}]
    assert changed.etag == '"v-4"'


def test_etag_falls_back_to_the_version(api, client, cluster_document):
    api.answer("GET", "/v1/clusters", {"items": [cluster_document(version=7)], "next_page_token": None})
    assert next(client.clusters.list()).etag == '"7"'


def test_names_are_quoted(api, client):
    with pytest.raises(ApiError):
        client.clusters.get("a/../b")
    assert api.requests[0].url.raw_path == b"/v1/clusters/a%2F..%2Fb"


def test_unknown_fields_are_kept(api, client, cluster_document):
    document = cluster_document(brand_new={"x": 1})
    api.answer("GET", "/v1/clusters/demo", document)
    assert client.clusters.get("demo").document() == document


def test_plan_asks_for_a_dry_run(api, client):
    price = {"currency": "USD", "hour": 0.25, "month": 182.5, "items": []}
    api.answer("POST", "/v1/clusters", {"plan": {"creates": [{"kind": "vpc", "name": "v"}], "price": price}})
    plan = client.clusters.plan_create({"name": "demo"})
    assert api.requests[0].url.params["dry_run"] == "true"
    assert plan.price is not None
    assert (plan.price.month, plan.creates) == (182.5, ({"kind": "vpc", "name": "v"},))


def test_delete_follows_the_location_to_its_operation(api, client, operation_document):
    api.answer("DELETE", "/v1/clusters/demo", {"operation_id": "op_other"}, status=202, Location="/v1/operations/op_01")
    api.answer("GET", "/v1/operations/op_01", operation_document())
    assert client.clusters.delete("demo").id == "op_01"


def test_operation_in_the_body_needs_no_second_call(api, client, operation_document):
    api.answer("POST", "/v1/clusters/demo/resume", operation_document(), status=202)
    assert client.clusters.resume("demo").id == "op_01"
    assert len(api.requests) == 1


def test_accepted_without_an_operation_is_an_error(api, client):
    api.answer("DELETE", "/v1/clusters/demo", {}, status=202)
    with pytest.raises(UnexpectedAnswer, match="no operation"):
        client.clusters.delete("demo")


def test_events_of_a_subject_after_one(api, client):
    api.answer("GET", "/v1/events", {"items": [{"id": "evt_2", "subject": "clu_01", "sequence": 2}]})
    assert [event.id for event in client.events.list(subject="clu_01", after="evt_1")] == ["evt_2"]
    assert dict(api.requests[0].url.params) == {"subject": "clu_01", "after": "evt_1"}
