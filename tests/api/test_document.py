"""``openapi.json`` is what the code says, and what the template routes: a route that is missing from it fails here."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from local import openapi as generator
from local.template import synthesized
from stockyard.edge import paths

ROOT = Path(__file__).resolve().parents[2]
FUNCTIONS = ("clusters", "cloud_accounts", "node_providers", "node_claims", "apply", "records", "machines")


def test_the_committed_document_is_the_code(document_path):
    assert document_path.read_text(encoding="utf-8") == generator.document()
    assert generator.main(["--check"]) == 0


def test_the_check_fails_when_they_differ(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(generator, "TARGET", tmp_path / "openapi.json")
    assert generator.main(["--check"]) == 1
    assert "openapi.json" in capsys.readouterr().err
    assert generator.main([]) == 0
    assert generator.main(["--check"]) == 0


def test_the_table_of_paths_is_the_document(all_operations):
    documented: dict[str, set[str]] = {}
    for one in all_operations:
        documented.setdefault(one.path, set()).add(one.method)
    assert documented == {path: set(methods) for path, methods in paths.METHODS.items()}


def test_what_the_template_routes_is_the_document(all_operations):
    routed = {
        found["Properties"]["RouteKey"]: found["Properties"].get("AuthorizationType") == "JWT"
        for path in synthesized(ROOT, ROOT / ".local" / "cache").glob("*.template.json")
        for found in json.loads(path.read_text(encoding="utf-8"))["Resources"].values()
        if found["Type"] == "AWS::ApiGatewayV2::Route"
    }
    assert routed.pop("$default") is False
    assert routed == {str(one): not one.public for one in all_operations}


def test_the_matrices_have_every_route(all_operations, whole):
    whole(all_operations)


def test_a_route_that_is_missing_from_the_matrices_is_noticed(all_operations, whole):
    for operation in all_operations:
        with pytest.raises(AssertionError):
            whole([one for one in all_operations if one != operation])
        for changed in (
            replace(operation, method="PUT", path="/v1/new"),
            replace(operation, public=not operation.public),
            replace(operation, machine=not operation.machine),
            replace(operation, roles=(*operation.roles, "stockyard-other")),
        ):
            with pytest.raises(AssertionError):
                whole([*all_operations, changed])


def test_every_audited_action_has_its_own_name():
    routes = [route for name in FUNCTIONS for route in import_module(f"functions.{name}.routes").door.routes]
    actions = [route.action for route in routes]
    assert len(actions) == len(set(actions))
    # an agent posts every few seconds; what it brings about is in the claims' events
    silent = {"POST /v1/clusters/{id}/observations"}
    assert {route.name for route in routes if route.method != "GET" and not route.audited} == silent


def test_no_answer_has_a_secret_field_but_those_that_exist_for_it(document_path):
    document = json.loads(document_path.read_text(encoding="utf-8"))
    allowed = {"ClientSecretView", "BootstrapAnswer", "KubeconfigView", "ClusterCreate", "ReadyReport"}
    names = re.compile("secret|password|kubeconfig|private", re.IGNORECASE)
    found = {
        name
        for name, schema in document["components"]["schemas"].items()
        if any(names.search(field) for field in schema.get("properties", {}))
    }
    assert found == allowed
