"""Demands of a pod on other pods."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.scheduling.packing.manifests import read_pod
from stockyard.scheduling.packing.model import PodTerm, Selector, Spread, term

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
APP = {"labelSelector": {"matchLabels": {"app": "x"}}}


def selector(**labels: str) -> Selector:
    return Selector(term({"key": key, "operator": "In", "values": [value]} for key, value in labels.items()))


def test_what_a_pod_asks_of_other_pods() -> None:
    app = {"labelSelector": {"matchLabels": {"app": "x"}}}
    spec = {
        "topologySpreadConstraints": [
            {"topologyKey": "zone", "maxSkew": 2, "whenUnsatisfiable": "ScheduleAnyway", **app},
            {"topologyKey": "host", "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["hash", "no"],
             "maxSkew": 1, "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor", **app},
            {"topologyKey": "rack", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "minDomains": 3},
        ],
        "affinity": {
            "podAffinity": {REQUIRED: [{"topologyKey": "zone", **app}]},
            "podAntiAffinity": {
                REQUIRED: [{"topologyKey": "host", "namespaces": ["n"], **app}],
                PREFERRED: [{"weight": 3, "podAffinityTerm": {"topologyKey": "z", "namespaceSelector": {}, **app}}],
            },
        },
    }  # fmt: skip
    pod = read_pod({"metadata": {"namespace": "own", "labels": {"hash": "h"}}, "spec": spec})
    assert pod.spreads == (
        Spread("zone", 2, selector(app="x"), hard=False),
        Spread("host", 1, selector(app="x", hash="h"), honors_affinity=False, honors_taints=True),
        Spread("rack", 1, Selector(), min_domains=3),
    )
    assert pod.affinity == (PodTerm("zone", selector(app="x"), frozenset({"own"})),)
    assert pod.anti_affinity == (
        PodTerm("host", selector(app="x"), frozenset({"n"})),
        PodTerm("z", selector(app="x"), None, 3),
    )


def beside(**fields: Any) -> dict[str, Any]:
    return {"affinity": {"podAffinity": {REQUIRED: [{"topologyKey": "zone", **fields}]}}}


def read_term(**fields: Any) -> PodTerm:
    labels = {"app": "x", "tenant": "red"}
    return read_pod({"metadata": {"labels": labels}, "spec": beside(**fields)}).affinity[0]


def test_keys_of_labels_are_added_to_the_selector_as_the_api_server_does() -> None:
    own = term([
        {"key": "app", "operator": "In", "values": ["x"]},
        {"key": "tenant", "operator": "NotIn", "values": ["red"]},
    ])  # fmt: skip
    for selector_document in ({"matchLabels": {"app": "x"}}, {}):
        read = read_term(labelSelector=selector_document, matchLabelKeys=["app"], mismatchLabelKeys=["tenant", "none"])
        assert read.selector == Selector(own)


def test_namespaces_are_selected_by_their_labels() -> None:
    namespace_labels = {"shop": {"team": "a"}, "bank": {"team": "b"}, "bare": {}}

    def selected(
        selector_document: dict[str, Any], namespace_labels: Any = namespace_labels, **fields: Any
    ) -> list[str] | None:
        spec = beside(labelSelector={}, namespaceSelector=selector_document, **fields)
        namespaces = read_pod({"spec": spec}, namespaces=namespace_labels).affinity[0].namespaces
        return None if namespaces is None else [name for name in ("shop", "bank", "bare", "else") if name in namespaces]

    no_team = [{"key": "team", "operator": "NotIn", "values": ["a"]}]
    by_name = {"matchLabels": {"kubernetes.io/metadata.name": "else"}}
    assert selected({"matchLabels": {"team": "a"}}) == ["shop"]
    assert selected({"matchLabels": {"team": "a"}}, namespaces=["bare"]) == ["shop", "bare"]
    assert selected({"matchExpressions": no_team}) == ["bank", "bare", "else"]
    assert selected(by_name) == selected(by_name, namespace_labels=None) == ["else"]
    assert selected({}) is None  # all of them
    assert selected({"matchLabels": {"team": "a"}}, namespace_labels=None) is None  # nobody has said which these are


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"topologyKey": True}, "topologyKey"),
        ({"namespaces": "n"}, "namespaces"),
        ({"namespaces": [1]}, "namespaces/0"),
        ({"namespaceSelector": []}, "namespaceSelector"),
        ({"labelSelector": {"matchLabels": {"a": False}}}, "labelSelector/matchLabels/a"),
        ({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}},
         "labelSelector/matchExpressions/0/operator"),
        ({"matchLabelKeys": ["a"]}, "matchLabelKeys"),
        ({"labelSelector": {}, "matchLabelKeys": ["a"], "mismatchLabelKeys": ["a"]}, "mismatchLabelKeys"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_of_a_term_names_the_field(fields: dict[str, Any], pointer: str) -> None:
    with pytest.raises(ValueError, match=f"^/spec/affinity/podAffinity/{REQUIRED}/0/{pointer}: "):
        read_term(**fields)


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"topologyKey": None}, "topologyKey"),
        ({"maxSkew": 0}, "maxSkew"),
        ({"minDomains": 0}, "minDomains"),
        ({"whenUnsatisfiable": "ScheduleAnyway", "minDomains": 1}, "minDomains"),
        ({"whenUnsatisfiable": "Never"}, "whenUnsatisfiable"),
        ({"nodeTaintsPolicy": True}, "nodeTaintsPolicy"),
        ({"nodeAffinityPolicy": "honor"}, "nodeAffinityPolicy"),
        ({"matchLabelKeys": 7}, "matchLabelKeys"),
    ],
)
def test_what_cannot_be_read_of_a_spread_names_the_field(fields: dict[str, Any], pointer: str) -> None:
    constraint = {"topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", **APP, **fields}
    with pytest.raises(ValueError, match=f"^/spec/topologySpreadConstraints/0/{pointer}: "):
        read_pod({"spec": {"topologySpreadConstraints": [constraint]}})


def test_a_preference_weighs_from_1_to_100() -> None:
    for weight in (0, 101, "5"):
        preferred = [{"weight": weight, "podAffinityTerm": {"topologyKey": "z", **APP}}]
        with pytest.raises(ValueError, match="/0/weight: "):
            read_pod({"spec": {"affinity": {"podAffinity": {PREFERRED: preferred}}}})


def test_required_terms_of_an_affinity_are_about_the_same_pods() -> None:
    """kube-scheduler counts a pod only when it matches all of them."""
    terms = [
        {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}},
        {"topologyKey": "host", "labelSelector": {"matchLabels": {"tier": "db"}}, "namespaces": ["own", "other"]},
    ]
    preferred = {"weight": 3, "podAffinityTerm": {"topologyKey": "zone", **APP}}
    affinity = {REQUIRED: terms, PREFERRED: [preferred]}
    pod = read_pod({"metadata": {"namespace": "own"}, "spec": {"affinity": {"podAffinity": affinity}}})
    zone, host, wish = pod.affinity
    assert [zone.selector, host.selector] == [selector(app="x", tier="db")] * 2
    assert (zone.key, host.key, wish.selector) == ("zone", "host", selector(app="x"))
    assert [name in (zone.namespaces or ()) for name in ("own", "other")] == [True, False]
    affinity[REQUIRED] = [*terms, {"topologyKey": "zone"}]
    pod = read_pod({"metadata": {"namespace": "own"}, "spec": {"affinity": {"podAffinity": affinity}}})
    assert [term_of_all.selector for term_of_all in pod.affinity[:3]] == [Selector()] * 3, "one selects no pod"
