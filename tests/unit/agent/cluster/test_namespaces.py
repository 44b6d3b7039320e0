"""Selectors of namespaces are told as the names that they select."""

from __future__ import annotations

from typing import Any

import pytest

from agent.stockyard_agent.cluster.namespaces import NONE, resolved
from tests.unit.agent.rig import Rig

NAMESPACES = {"prod": {"team": "db", "kubernetes.io/metadata.name": "prod"}, "stage": {"team": "db"}, "dev": {}}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def term(**more: Any) -> dict[str, Any]:
    return {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}, **more}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {}),
        ({"namespaces": ["x"]}, {"namespaces": ["x"]}),
        ({"namespaceSelector": {}}, {"namespaceSelector": {}}),
        ({"namespaceSelector": {"matchLabels": {}}}, {"namespaceSelector": {"matchLabels": {}}}),
        ({"namespaceSelector": {"matchLabels": {"team": "db"}}}, {"namespaces": ["prod", "stage"]}),
        (
            {"namespaceSelector": {"matchLabels": {"team": "db"}}, "namespaces": ["x", "prod"]},
            {"namespaces": ["prod", "stage", "x"]},
        ),
        (
            {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}},
            {"namespaces": ["dev"]},
        ),
        ({"namespaceSelector": {"matchLabels": {"team": "web"}}}, {"namespaces": [NONE]}),
        ({"namespaceSelector": {"matchLabels": {"team": "web"}}, "namespaces": ["x"]}, {"namespaces": ["x"]}),
    ],
)
def test_terms_name_the_namespaces_that_they_select(before: dict[str, Any], after: dict[str, Any]) -> None:
    for kind in ("podAffinity", "podAntiAffinity"):
        part = {"affinity": {kind: {REQUIRED: [term(**before)]}, "nodeAffinity": {"x": 1}}, "priority": 1}
        assert resolved(part, NAMESPACES) == {
            "affinity": {kind: {REQUIRED: [term(**after)]}, "nodeAffinity": {"x": 1}}, "priority": 1,
        }  # fmt: skip
        weighted = {"affinity": {kind: {PREFERRED: [{"weight": 1, "podAffinityTerm": term(**before)}]}}}
        (resolved_term,) = resolved(weighted, NAMESPACES)["affinity"][kind][PREFERRED]
        assert resolved_term == {"weight": 1, "podAffinityTerm": term(**after)}


def test_reports_have_the_names_and_only_then_are_namespaces_read(rig: Rig) -> None:
    team = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "prod", "labels": {"team": "db"}}}
    rig.kube.install([team])
    reports = rig.reports()
    rig.add_waiting("plain")
    rig.steps(reports, 2)
    assert not any(call.action.resource == "namespaces" for call in rig.kube.calls)
    rule = {"podAffinity": {REQUIRED: [term(namespaceSelector={"matchLabels": {"team": "db"}})]}}
    rig.add_waiting("near", affinity=rule)
    rig.steps(reports, 2)
    affinities = [template["spec"].get("affinity") for template in rig.platform.pods.templates()]
    assert {"podAffinity": {REQUIRED: [term(namespaces=["prod"])]}} in affinities
