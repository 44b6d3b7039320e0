"""Protobuf, patches, selectors and printed columns of the simulated API."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from local.kubernetes.requests import PROTOBUF, parse
from local.kubernetes.resources import RESOURCES, Resource
from local.kubernetes.schema import openapi, protobuf, validation
from local.kubernetes.schema.columns import duration, table
from local.kubernetes.schema.patches import json_patched, strategic
from local.kubernetes.store import StatusError, label_selector

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "labels": {"app": "web"}, "creationTimestamp": "2026-11-29T11:55:00Z"},
    "spec": {
        "replicas": 0,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"spec": {"containers": [{"name": "c", "image": "nginx"}, {"name": "d", "image": "redis"}]}},
    },
}  # fmt: skip


def varint(number: int) -> bytes:
    text = b""
    while number > 127:
        text += bytes([number & 127 | 128])
        number >>= 7
    return text + bytes([number])


def field(number: int, value: bytes | int) -> bytes:
    """A field as protobuf writes it."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value % 2**64)
    return varint(number << 3 | 2) + varint(len(value)) + value


def wire(api_version: str, kind: str, body: bytes) -> bytes:
    about = field(1, api_version.encode()) + field(2, kind.encode())
    return protobuf.PREFIX + field(1, about) + field(2, body)


def test_protobuf_is_read_by_the_numbers_of_fields() -> None:
    port = field(1, b"") + field(2, b"TCP") + field(3, 80) + field(4, field(1, 1) + field(2, 0) + field(3, b"http"))
    selector = field(2, field(1, b"app") + field(2, b"web"))
    meta = field(1, field(1, b"web") + field(8, b"") + field(11, field(1, b"a") + field(2, b"b")))
    service = protobuf.read(wire("v1", "Service", meta + field(2, field(1, port) + selector + field(99, b"new"))))
    assert service == {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "labels": {"a": "b"}},
        "spec": {"ports": [{"protocol": "TCP", "port": 80, "targetPort": "http"}], "selector": {"app": "web"}},
    }
    secret = protobuf.read(wire("v1", "Secret", field(2, field(1, b"p") + field(2, b"q"))))
    assert secret["data"] == {"p": "cQ=="}
    # A pointer to zero is there, a plain zero is not.
    spec = field(1, 0) + field(5, 0)
    assert protobuf.read(wire("apps/v1", "Deployment", field(2, spec)))["spec"] == {"replicas": 0}
    quota = protobuf.read(wire("v1", "ResourceQuota", field(2, field(1, field(1, b"pods") + field(2, field(1, b"3"))))))
    assert quota["spec"] == {"hard": {"pods": "3"}}
    keyed = field(1, field(1, b"conf")) + field(2, b"k")
    container = field(2, field(1, b"c") + field(7, field(1, b"A") + field(3, field(3, keyed))))
    pod = protobuf.read(wire("v1", "Pod", field(2, container)))
    assert pod["spec"]["containers"][0]["env"][0]["valueFrom"] == {"configMapKeyRef": {"name": "conf", "key": "k"}}


@pytest.mark.parametrize(
    ("content_type", "body", "status"),
    [
        (PROTOBUF, b"k8s\x00", 415),
        (PROTOBUF, b"{}", 415),
        (PROTOBUF, wire("example.test/v1", "Thing", b""), 415),
        (PROTOBUF, wire("v1", "Pod", b"\x0a\xff"), 415),
        ("application/cbor", b"\xd9", 415),
        ("application/json", b"{", 400),
        ("application/json", b"[]", 400),
        ("application/json-patch+json", b"{}", 400),
        ("application/apply-patch+yaml", b"a: [", 400),
    ],
)
def test_bodies_that_cannot_be_read_are_refused(content_type: str, body: bytes, status: int) -> None:
    with pytest.raises(StatusError) as refused:
        parse(RESOURCES, "POST", "/api/v1/namespaces/default/pods", {"content-type": content_type}, body)
    assert refused.value.status == status


def test_a_strategic_patch_merges_lists_by_their_keys() -> None:
    containers = {
        "$setElementOrder/containers": [{"name": "d"}, {"name": "e"}],
        "containers": [{"name": "e", "image": "new"}, {"name": "c", "$patch": "delete"}, {"name": "d", "image": "2"}],
    }
    changed = strategic(
        DEPLOYMENT,
        {
            "metadata": {"labels": {"app": None}},
            "spec": {"template": {"spec": containers}, "strategy": {"type": "Recreate"}},
        },
        "apps/v1.Deployment",
    )
    assert changed["metadata"]["labels"] == {}
    listed = changed["spec"]["template"]["spec"]["containers"]
    assert listed == [{"name": "d", "image": "2"}, {"name": "e", "image": "new"}]
    again = {
        "spec": {"strategy": {"$retainKeys": ["type"], "type": "RollingUpdate"}, "selector": {"$patch": "replace"}}
    }
    assert strategic(changed, again, "apps/v1.Deployment")["spec"]["selector"] == {}
    node = {"spec": {"taints": [{"key": "a"}]}, "metadata": {"finalizers": ["x", "y"]}}
    patch = {
        "spec": {"taints": [{"key": "b"}]},
        "metadata": {"finalizers": ["z"], "$deleteFromPrimitiveList/finalizers": ["x"]},
    }
    patched_node = strategic(node, patch, "core/v1.Node")
    assert (patched_node["spec"]["taints"], patched_node["metadata"]["finalizers"]) == ([{"key": "b"}], ["y", "z"])
    with pytest.raises(StatusError, match="does not contain declared merge key: name"):
        strategic(DEPLOYMENT, {"spec": {"template": {"spec": {"containers": [{"image": "x"}]}}}}, "apps/v1.Deployment")


def test_a_json_patch_is_carried_out_or_refused_whole() -> None:
    start = {"a": {"b/c": [1, 2]}, "d": 1}
    operations = [
        {"op": "test", "path": "/a/b~1c/0", "value": 1},
        {"op": "add", "path": "/a/b~1c/1", "value": 9},
        {"op": "add", "path": "/a/b~1c/-", "value": 3},
        {"op": "remove", "path": "/a/b~1c/0"},
        {"op": "move", "from": "/d", "path": "/e"},
        {"op": "copy", "from": "/e", "path": "/f"},
        {"op": "replace", "path": "/f", "value": 2},
    ]
    assert json_patched(start, operations) == {"a": {"b/c": [9, 2, 3]}, "e": 1, "f": 2}
    for wrong in (
        {"op": "replace", "path": "/x", "value": 1},
        {"op": "test", "path": "/d", "value": 2},
        {"op": "sing", "path": "/d"},
    ):
        with pytest.raises(StatusError) as refused:
            json_patched(start, [wrong])
        assert refused.value.status == 422


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"spec": {**DEPLOYMENT["spec"], "replica": 1}}, 'strict decoding error: unknown field "spec.replica"'),
        ({"spec": {**DEPLOYMENT["spec"], "replicas": "3"}}, "spec.replicas has to be of the kind int, not str"),
        ({"spec": {**DEPLOYMENT["spec"], "template": []}}, "spec.template has to be an object"),
        ({"spec": {"replicas": 1}}, 'Deployment "web" is invalid: spec.selector: Required value'),
        (
            {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"spec": {"containers": [{"name": "c"}]}}}},
            "spec.template.spec.containers[0].image: Required value",
        ),
    ],
)  # fmt: skip
def test_fields_are_checked(change: dict[str, Any], message: str) -> None:
    validation.check(DEPLOYMENT, strict=True)
    with pytest.raises(StatusError) as refused:
        validation.check({**DEPLOYMENT, **change}, strict=True)
    assert message in refused.value.message


def test_what_selectors_choose() -> None:
    labels = {"app": "web", "tier": "front"}
    for text, expected in {
        "": True, "app": True, "!app": False, "app=web": True, "app==web,tier!=back": True, "app!=web": False,
        "app in (api, web),tier": True, "app notin (web)": False, "none notin (x)": True, "app in (api)": False,
    }.items():  # fmt: skip
        assert label_selector(text)({"metadata": {"labels": labels}}) is expected, text
    with pytest.raises(StatusError):
        label_selector("a b")


def test_tables_have_the_columns_of_a_kind() -> None:
    by_name = {resource.name: resource for resource in RESOURCES}
    answer = table(by_name["deployments"], [DEPLOYMENT], NOW, {})
    names = [column["name"] for column in answer["columnDefinitions"] if not column["priority"]]
    assert names == ["Name", "Ready", "Up-to-date", "Available", "Age"]
    assert answer["rows"][0]["cells"] == ["web", "0/0", 0, 0, "5m", "c,d", "nginx,redis", "app=web"]
    assert answer["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    for resource in RESOURCES:
        table(resource, [{"metadata": {"name": "x"}, "spec": {}}], NOW, {"includeObject": "Object"})
    columns = (
        {"name": "Ready", "jsonPath": '.status.conditions[?(@.type=="Ready")].status', "type": "string"},
        {"name": "Zone", "jsonPath": ".metadata.labels['topology\\.kubernetes\\.io/zone']", "type": "string"},
        {"name": "Since", "jsonPath": ".metadata.creationTimestamp", "type": "date", "priority": 1},
    )
    own = Resource("example.test", "v1", "things", "Thing", False, columns=columns)
    meta = {"name": "t", "labels": {"topology.kubernetes.io/zone": "a"}, "creationTimestamp": "2026-11-29T10:00:00Z"}
    thing = {"metadata": meta, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    assert table(own, [thing], NOW, {})["rows"][0]["cells"] == ["t", "True", "a", "120m"]


def test_how_long_ago_something_was() -> None:
    expected = {
        -5: "0s", 119: "119s", 150: "2m30s", 300: "5m", 7200: "120m", 12_000: "3h20m", 36_000: "10h", 183_600: "2d3h",
        864_000: "10d", 86_400 * 800: "2y70d", 86_400 * 3650: "10y",
    }  # fmt: skip
    assert {seconds: duration(seconds) for seconds in expected} == expected


def test_the_openapi_documents_say_that_fields_are_checked() -> None:
    root = openapi.document(openapi.ROOT, RESOURCES)
    assert root is not None
    assert {"api/v1", "apis/apps/v1"} <= root["paths"].keys()
    for path, entry in root["paths"].items():
        document = openapi.document(entry["serverRelativeURL"], RESOURCES)
        assert document is not None, path
        schemas = document["components"]["schemas"]
        for name, operations in document["paths"].items():
            if "patch" in operations:
                assert [each["name"] for each in operations["patch"]["parameters"]] == ["fieldValidation"], name
        text = str(document)
        for reference in {part.split("'")[0] for part in text.split("'#/components/schemas/")[1:]}:
            assert reference in schemas, f"{path}: {reference}"
    assert openapi.document(f"{openapi.ROOT}/apis/example.test/v1", RESOURCES) is None
