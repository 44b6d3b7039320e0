"""Refusals of parts of a vcluster.yaml, with their words and places."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.domain.models.pools.read_vcluster import read_vcluster
from stockyard.errors import InvalidInput
from tests.unit.domain.models.pools.test_read_vcluster import SELECTOR, STATIC, of_dynamic, vcluster


def faults(document: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidInput) as refused:
        read_vcluster(document)
    return {fault.pointer.removeprefix("/privateNodes"): fault.detail for fault in refused.value.errors}


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "not enabled": (
        {"privateNodes": {"autoNodes": [{"provider": "p", "static": [STATIC]}]}},
        "/enabled",
        "must be true where pools exist",
    ),
    "enabled as a text": (vcluster([], enabled="yes"), "/enabled", "must be true or false"),
    "a text as pools": (vcluster("x"), "/autoNodes", "must be a list or an object"),
    "both names": (vcluster([], nodePools={}), "/nodePools", "give autoNodes or nodePools, not both"),
    "no provider": (vcluster({"static": [STATIC]}), "/autoNodes/static/0/provider", "node pool provider is required"),
    "no quantity": (
        vcluster([{"provider": "p", "static": [{"name": "a"}]}]),
        "/autoNodes/0/static/0/quantity",
        "this field is required",
    ),
    "a huge quantity": (
        vcluster([{"provider": "p", "static": [{"name": "a", "quantity": 10_001}]}]),
        "/autoNodes/0/static/0/quantity",
        "must be at most 10000",
    ),
    "two providers in an entry": (
        vcluster([{"provider": "p", "static": [{**STATIC, "provider": "q"}]}]),
        "/autoNodes/0/static/0/provider",
        "is said once, for all pools of the entry",
    ),
    "requirements under two names": (
        of_dynamic(requirements=SELECTOR, nodeTypeSelector=SELECTOR),
        "/autoNodes/0/dynamic/0/requirements",
        "give requirements or nodeTypeSelector, not both",
    ),
    "a field of dynamic pools": (
        vcluster([{"provider": "p", "static": [{**STATIC, "limits": {}}]}]),
        "/autoNodes/0/static/0/limits",
        "unknown field",
    ),
    "half a node": (
        of_dynamic(limits={"nodes": "1.5"}),
        "/autoNodes/0/dynamic/0/limits/nodes",
        "must be a whole number of nodes",
    ),
    "no quantity of cpu": (
        of_dynamic(limits={"cpu": "x"}),
        "/autoNodes/0/dynamic/0/limits/cpu",
        "'x' is not a quantity: a number with one of n u m k M G T P E Ki Mi Gi Ti Pi Ei or e3",
    ),
    "a weight of 0": (
        of_dynamic(weight=0),
        "/autoNodes/0/dynamic/0/weight",
        "must be at least 1",
    ),
    "an age in days": (
        of_dynamic(expireAfter="30d"),
        "/autoNodes/0/dynamic/0/expireAfter",
        "must be a duration such as 30s, 5m or 1h30m, or Never",
    ),
    "an endless age": (
        of_dynamic(expireAfter="999999999h"),
        "/autoNodes/0/dynamic/0/expireAfter",
        "must be at most 292 years",
    ),
    "a taint without effect": (
        of_dynamic(taints=[{"key": "t"}]),
        "/autoNodes/0/dynamic/0/taints/0/effect",
        "this field is required",
    ),
    "a label of Kubernetes": (
        of_dynamic(nodeLabels={"kubernetes.io/x": "y"}),
        "/autoNodes/0/dynamic/0/nodeLabels/kubernetes.io~1x",
        'label domain "kubernetes.io" is restricted',
    ),
    "our label": (
        of_dynamic(nodeLabels={"stockyard.dev/pool": "y"}),
        "/autoNodes/0/dynamic/0/nodeLabels/stockyard.dev~1pool",
        "is set by Stockyard and cannot be given",
    ),
    "a number as a value": (
        of_dynamic(requirements=[{"property": "k", "value": 5}]),
        "/autoNodes/0/dynamic/0/requirements/0/value",
        "invalid requirements for node pool a: must be a string",
    ),
    "a text as a bound": (
        of_dynamic(requirements=[{"property": "k", "operator": "Gt", "value": "x"}]),
        "/autoNodes/0/dynamic/0/requirements/0",
        "invalid requirements for node pool a: operator Gt needs exactly one integer that is not negative",
    ),
    "a property as a number": (
        vcluster([{"provider": "p", "properties": {"k": 1}}]),
        "/autoNodes/0/properties/k",
        "must be a string, true or false",
    ),
    "a property of Kubernetes": (
        vcluster({"provider": "p", "properties": {"kubernetes.io/hostname": "x"}, "static": [STATIC]}),
        "/autoNodes/properties/kubernetes.io~1hostname",
        'label "kubernetes.io/hostname" is restricted',
    ),
    "a value that is no label": (
        vcluster({"provider": "p", "properties": {"k": "a b"}, "static": [STATIC]}),
        "/autoNodes/properties/k",
        "has at most 63 letters, digits, - _ . and starts and ends with a letter or digit",
    ),
    "a variable that is no label": (
        vcluster([{"provider": "p", "properties": {"k": "a b"}}]),
        "/autoNodes/0/properties/k",
        "'a b' is not a label value: 1 to 63 letters, digits, '-', '_' or '.', with a letter or digit at both ends",
    ),
    "no property before the slash": (
        vcluster({"provider": "p", "properties": {"/v": True}, "static": [STATIC]}),
        "/autoNodes/properties/~1v",
        "must have at least 1 character",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_named_at_its_field(case: str) -> None:
    document, path, words = REFUSED[case]
    assert faults(document) == {path: words}


def test_budgets_are_checked() -> None:
    budgets = [
        {"nodes": "101%"},
        {"reasons": ["Empty"]},
        {"nodes": "1", "schedule": "@daily"},
        {"nodes": "1", "duration": "1h"},
        {"nodes": "1", "schedule": "* * *", "duration": "1h"},
        {"nodes": "1", "schedule": "@daily", "duration": "30s"},
        {"nodes": "1", "reasons": ["Repaired"]},
        {"nodes": -1},
        {"nodes": "1", "schedule": "@daily", "duration": "1h", "timeZone": "Nowhere"},
        {"nodes": "1", "schedule": "TZ=Nowhere @daily", "duration": "1h", "timeZone": "UTC"},
    ]
    at = "/autoNodes/0/dynamic/0/disruption/budgets"
    words = faults(of_dynamic(disruption={"budgets": budgets}))
    assert {path.removeprefix(at) for path in words} == {
        *("/0/nodes", "/1/nodes", "/2", "/3", "/4/schedule", "/5/duration", "/6/reasons/0", "/7/nodes"),
        *("/8/timeZone", "/9/schedule"),
    }
    assert words[f"{at}/2"] == words[f"{at}/3"] == "'schedule' must be set with 'duration'"
    assert words[f"{at}/1/nodes"] == "this field is required"


def test_faults_of_all_entries_come_together() -> None:
    document = vcluster(
        [{"static": [STATIC]}, {"provider": "p", "static": [{"quantity": 1}]}, {"provider": "q", "x": 1}]
    )
    assert set(faults(document)) == {"/autoNodes/0/provider", "/autoNodes/1/static/0/name", "/autoNodes/2/x"}


def test_a_document_has_at_most_100_pools() -> None:
    def entry(provider: str, count: int) -> dict[str, Any]:
        return {"provider": provider, "dynamic": [{"name": f"{provider}-{number}"} for number in range(count)]}

    assert len(read_vcluster(vcluster([entry("p", 60), entry("q", 40)])).pools) == 100
    assert faults(vcluster([entry("p", 60), entry("q", 41)])) == {"/autoNodes/0": "a document has at most 100 pools"}
    assert list(faults(vcluster([entry("p", 101)]))) == ["/autoNodes/0/dynamic"]
    assert list(faults(vcluster([{"provider": f"p{number}"} for number in range(101)]))) == ["/autoNodes"]


def test_requirements_of_properties_count_with_the_others() -> None:
    selectors = [{"property": f"k{number}", "operator": "Exists"} for number in range(99)]
    document = vcluster(
        [{"provider": "p", "properties": {"a": True}, "dynamic": [{"name": "a", "requirements": selectors}]}]
    )
    assert len(read_vcluster(document).pools[0].requirements) == 100
    document["privateNodes"]["autoNodes"][0]["properties"]["b"] = True
    assert list(faults(document)) == ["/autoNodes/0/dynamic/0"]
