"""Pools of a vcluster.yaml: its four forms, what its properties mean, and what is refused where."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.domain.models.pools.read_vcluster import is_vcluster, read_vcluster
from stockyard.domain.pools.manifests import PoolsDocument
from stockyard.domain.values.pointers import pointer

SELECTOR = [{"property": "zone-kind", "value": "edge"}]
ENTRY = {"key": "zone-kind", "operator": "In", "values": ["edge"]}


def vcluster(auto_nodes: Any, **private: Any) -> dict[str, Any]:
    return {"privateNodes": {"enabled": True, "autoNodes": auto_nodes, **private}}


def of_dynamic(**fields: Any) -> dict[str, Any]:
    return vcluster([{"provider": "p", "dynamic": [{"name": "a", **fields}]}])


def remarks(document: PoolsDocument) -> dict[str, str]:
    words = {pointer(*path).removeprefix("/privateNodes"): text for path, text in document.warnings}
    return {path: text for path, text in words.items() if not path.endswith("/terminationGracePeriod")}


STATIC = {"name": "s", "quantity": 2}
DYNAMIC = {"name": "d", "limits": {"cpu": 100, "nodes": "10"}}
FORMS = {
    "a list by provider": (
        vcluster([{"provider": "p", "static": [{**STATIC, "nodeTypeSelector": SELECTOR}], "dynamic": [DYNAMIC]}]),
        None,
    ),
    "pools that name their provider": (
        vcluster(
            {
                "static": [{**STATIC, "provider": "p", "requirements": SELECTOR}],
                "dynamic": [{**DYNAMIC, "provider": "p"}],
            }
        ),
        ("/autoNodes", "an object whose pools each name their provider"),
    ),
    "an object of one provider": (
        vcluster({"provider": "p", "static": [{**STATIC, "requirements": SELECTOR}], "dynamic": [DYNAMIC]}),
        ("/autoNodes", "an object with one provider"),
    ),
    "nodePools": (
        {
            "privateNodes": {
                "enabled": True,
                "nodePools": {
                    "static": [{**STATIC, "provider": "p", "requirements": SELECTOR}],
                    "dynamic": [{**DYNAMIC, "provider": "p"}],
                },
            }
        },
        ("/nodePools", "before autoNodes"),
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_says_the_same_pools(form: str) -> None:
    document, remark = FORMS[form]
    read = read_vcluster(document)
    static, dynamic = read.pools
    assert (static.name, static.kind, static.provider_ref, static.quantity) == ("s", "static", "p", 2)
    assert static.requirements == (ENTRY,)
    assert (dynamic.name, dynamic.kind, dynamic.provider_ref) == ("d", "dynamic", "p")
    assert dynamic.limits == {"cpu": "100", "nodes": "10"}
    assert {pool.form for pool in read.pools} == {"autoNodes"}
    assert [path[-2:] for path in read.paths] == [("static", 0), ("dynamic", 0)]
    if remark is None:
        assert remarks(read) == {}
    else:
        assert remark[1] in remarks(read)[remark[0]]


def test_published_defaults() -> None:
    static, dynamic = read_vcluster(FORMS["a list by provider"][0]).pools
    assert (static.termination_grace_period, static.expire_after, static.disruption) == ("30s", "", {})
    assert (dynamic.termination_grace_period, dynamic.expire_after, dynamic.weight) == ("30s", "720h", 0)
    assert dynamic.disruption == {
        "consolidateAfter": "30s",
        "consolidationPolicy": "WhenEmptyOrUnderutilized",
        "budgets": [{"nodes": "10%"}],
    }


def test_the_default_grace_is_said() -> None:
    document = vcluster(
        [{"provider": "p", "static": [STATIC, {**STATIC, "name": "t", "terminationGracePeriod": "1h"}]}]
    )
    paths = [path for path, _ in read_vcluster(document).warnings]
    assert paths == [("privateNodes", "autoNodes", 0, "static", 0, "terminationGracePeriod")]


def test_every_field_of_a_dynamic_pool() -> None:
    (pool,) = read_vcluster(
        of_dynamic(
            taints=[{"key": "t", "value": "v", "effect": "NoSchedule"}],
            nodeLabels={"my-label": "my-value"},
            limits={"memory": "1Ti", "usd_hour": "12.5"},
            disruption={
                "consolidateAfter": "Never",
                "consolidationPolicy": "WhenEmpty",
                "budgets": [
                    {"nodes": "20%", "reasons": ["Empty", "Drifted"]},
                    {"nodes": 5},
                    {"nodes": "0", "schedule": "@daily", "duration": "10m", "reasons": []},
                    {"nodes": "0", "schedule": "@daily", "duration": "10m", "timeZone": "Europe/Berlin"},
                ],
            },
            terminationGracePeriod="Never",
            expireAfter="1h30m",
            weight=7,
        )
    ).pools
    assert pool.taints == ({"key": "t", "value": "v", "effect": "NoSchedule"},)
    assert pool.labels == {"my-label": "my-value"}
    assert pool.limits == {"memory": "1Ti", "usd_hour": "12.5"}
    assert pool.disruption == {
        "consolidateAfter": "Never",
        "consolidationPolicy": "WhenEmpty",
        "budgets": [
            {"nodes": "20%", "reasons": ["Empty", "Drifted"]},
            {"nodes": "5"},
            {"nodes": "0", "schedule": "@daily", "duration": "10m"},
            {"nodes": "0", "schedule": "@daily", "duration": "10m", "timeZone": "Europe/Berlin"},
        ],
    }
    assert (pool.termination_grace_period, pool.expire_after, pool.weight) == ("Never", "1h30m", 7)


def test_both_spellings_of_does_not_exist() -> None:
    selectors = [{"property": "k", "operator": "NotExists"}, {"property": "m", "operator": "DoesNotExist"}]
    (pool,) = read_vcluster(of_dynamic(nodeTypeSelector=selectors)).pools
    assert [entry["operator"] for entry in pool.requirements] == ["DoesNotExist", "DoesNotExist"]


def test_other_parts_are_named_and_not_looked_at() -> None:
    document = {**of_dynamic(profile="gpu"), "controlPlane": {"x": 1}, "sync": {}}
    document["privateNodes"] |= {"kubelet": {}, "vpn": {"enabled": True, "nodeToNode": {"enabled": True}}}
    read = read_vcluster(document)
    words = remarks(read)
    assert {path for path, text in words.items() if text == "This part is not looked at."} == {
        "/controlPlane",
        "/sync",
        "/kubelet",
    }
    assert "does nothing yet" in words["/autoNodes/0/dynamic/0/profile"]
    assert (read.vpn, read.node_to_node) == (True, True)
    assert read.pools[0].document == {"profile": "gpu"}


def test_many_other_parts_are_counted() -> None:
    read = read_vcluster({**of_dynamic(), **{f"part{number}": 1 for number in range(60)}})
    assert remarks(read)[""] == "10 further parts are not looked at."


def test_the_networks_are_two_switches() -> None:
    read = read_vcluster({"privateNodes": {"vpn": {"enabled": True}}})
    assert (read.vpn, read.node_to_node) == (True, False)
    read = read_vcluster({"privateNodes": {"nodeToNode": {"enabled": True}}})
    assert (read.vpn, read.node_to_node) == (False, True)


def test_a_label_names_the_cluster() -> None:
    document = {**of_dynamic(), "metadata": {"labels": {"stockyard.dev/cluster": "demo"}}}
    assert read_vcluster(document).cluster_ref == "demo"


def test_without_private_nodes_there_are_no_pools() -> None:
    read = read_vcluster({"controlPlane": {}})
    assert read.pools == ()
    assert remarks(read)[""] == "There are no privateNodes in it, so there are no pools."
    assert read_vcluster({"privateNodes": {"enabled": False}}).pools == ()


def test_what_a_vcluster_yaml_is() -> None:
    assert is_vcluster({"privateNodes": {}})
    assert is_vcluster({"sync": {}})
    assert not is_vcluster({"privateNodes": {}, "kind": "NodePool"})
    assert not is_vcluster({"hello": 1})


# --- properties -------------------------------------------------------------------------------------------------------

PROPERTIES = {
    "k: v": ({"my-property": "my-value"}, [{"key": "my-property", "operator": "In", "values": ["my-value"]}]),
    "k/v: true": (
        {"my-property/a": True, "my-property/b": True},
        [{"key": "my-property", "operator": "In", "values": ["a", "b"]}],
    ),
    "k/v: false": (
        {"my-property/a": False, "my-property/b": False},
        [{"key": "my-property", "operator": "NotIn", "values": ["a", "b"]}],
    ),
    "k: true": ({"my-property": True}, [{"key": "my-property", "operator": "Exists"}]),
    "k: false": ({"my-property": False}, [{"key": "my-property", "operator": "DoesNotExist"}]),
    "a known property": (
        {"topology.kubernetes.io/zone": True},
        [{"key": "topology.kubernetes.io/zone", "operator": "Exists"}],
    ),
    "a value of a known property": (
        {"topology.kubernetes.io/zone/eu-1": True},
        [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["eu-1"]}],
    ),
    "a property of the provider's types": (
        {"acme.com/fast": False},
        [{"key": "acme.com/fast", "operator": "DoesNotExist"}],
    ),
    "a property that no type has": (
        {"acme.com/slow": True},
        [{"key": "acme.com", "operator": "In", "values": ["slow"]}],
    ),
}


@pytest.mark.parametrize("case", PROPERTIES)
def test_properties_of_an_object_are_requirements(case: str) -> None:
    properties, requirements = PROPERTIES[case]
    property_keys = {"topology.kubernetes.io/zone", "acme.com/fast"}
    document = vcluster({"provider": "p", "properties": properties, "static": [STATIC]})
    read = read_vcluster(document, properties=property_keys)
    assert list(read.pools[0].requirements) == requirements
    assert read.pools[0].properties == {}
    words = remarks(read)
    assert isinstance(properties, dict)
    for name in properties:
        assert words[pointer("autoNodes", "properties", name)].startswith("Read as the requirement ")


def test_texts_of_a_list_are_variables_and_booleans_are_requirements() -> None:
    entry = {"provider": "p", "properties": {"region": "eu", "size/big": True, "vcluster.com/ccm-enabled": True}}
    pools = [{**STATIC, "properties": {"region": "us"}}, {**STATIC, "name": "t"}]
    read = read_vcluster(vcluster([{**entry, "static": pools}]))
    assert [pool.properties for pool in read.pools] == [
        {"region": "us", "vcluster.com/ccm-enabled": "true"},
        {"region": "eu", "vcluster.com/ccm-enabled": "true"},
    ]
    for pool in read.pools:
        assert pool.requirements == ({"key": "size", "operator": "In", "values": ["big"]},)
    words = remarks(read)
    assert words["/autoNodes/0/properties/region"] == "Read as a variable of the provider."
    assert words["/autoNodes/0/properties/size~1big"] == "Read as the requirement size In big."
    assert words["/autoNodes/0/static/0/properties/region"] == "Read as a variable of the provider."


def test_settings_of_a_provider_are_variables_in_every_form() -> None:
    properties = {"bcm.vcluster.com/network-name": "any text", "vcluster.com/node-type": "cpu"}
    read = read_vcluster(vcluster({"provider": "p", "properties": properties, "static": [STATIC]}))
    assert read.pools[0].properties == {"bcm.vcluster.com/network-name": "any text"}
    assert read.pools[0].requirements == ({"key": "vcluster.com/node-type", "operator": "In", "values": ["cpu"]},)


def test_the_document_itself_stays_as_it_is() -> None:
    document = vcluster([{"provider": "p", "static": [{**STATIC, "profile": None}]}])
    assert read_vcluster(document).pools[0].document == {}
    assert document["privateNodes"]["autoNodes"][0]["static"][0]["profile"] is None
