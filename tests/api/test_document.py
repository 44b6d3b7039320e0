"""``openapi.json`` agrees with the code and with the routes of the template."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from local import openapi as generator
from local.assembly import synthesized
from stockyard.edge import paths

ROOT = Path(__file__).resolve().parents[2]


def test_the_committed_files_are_up_to_date():
    assert generator.main(["--check"]) == 0


def test_the_check_fails_when_files_differ_from_the_code(tmp_path, capsys):
    assert generator.main(["--check"], tmp_path) == 1
    refusal = capsys.readouterr().err
    assert "openapi.json" in refusal
    assert "paths.json" in refusal
    assert generator.main([], tmp_path) == 0
    assert generator.main(["--check"], tmp_path) == 0


def test_the_document_has_at_most_28000_lines(document_path):
    """115 operations; descriptions of all fields are 1,200 of its lines, and examples of bodies, answers and refusals
    2,900. Who has to read a change of it sees a line for each thing that has changed."""
    assert len(document_path.read_text(encoding="utf-8").splitlines()) <= 28_000


def test_the_table_of_paths_agrees_with_the_document(all_operations):
    documented: dict[str, set[str]] = {}
    for operation in all_operations:
        documented.setdefault(operation.path, set()).add(operation.method)
    assert documented == {path: set(names) for path, names in paths.methods().items()}


def test_the_routes_of_the_template_agree_with_the_document(all_operations):
    routed = {
        resource["Properties"]["RouteKey"]: resource["Properties"].get("AuthorizationType") == "JWT"
        for path in synthesized(ROOT, ROOT / ".local" / "cache").glob("*.template.json")
        for resource in json.loads(path.read_text(encoding="utf-8"))["Resources"].values()
        if resource["Type"] == "AWS::ApiGatewayV2::Route"
    }
    assert routed.pop("$default") is False
    assert routed == {str(operation): not operation.public for operation in all_operations}


def test_the_document_has_every_declared_route(all_operations, check_all_declared):
    check_all_declared(all_operations)


def test_the_check_of_routes_fails_for_a_missing_or_changed_route(all_operations, check_all_declared):
    for operation in all_operations:
        with pytest.raises(AssertionError):
            check_all_declared([candidate for candidate in all_operations if candidate != operation])
        for changed in (
            replace(operation, method="PUT", path="/v1/new"),
            replace(operation, public=not operation.public),
            replace(operation, machine=not operation.machine),
            replace(operation, roles=(*operation.roles, "stockyard-other")),
        ):
            with pytest.raises(AssertionError):
                check_all_declared([*all_operations, changed])


BOOT_REPORTS = ("clusters/{id}/boot-reports", "node-claims/{id}/boot-reports")


def test_every_audited_action_has_its_own_name():
    routes = [route for function in generator.functions() for route in function.routes]
    actions = [route.action for route in routes]
    assert len(actions) == len(set(actions))
    # An agent posts every few seconds. The effects of its reports are in the events of the claims; what a machine says
    # of its first boot is in the operation that fails. To ask for placements, and to replay a trace, changes nothing.
    # Who asked for a Secret that an agent renews is in the record of that change. What a site's connector is asked for
    # is in the operations of those who ask.
    quiet_paths = (
        "clusters/{id}/observations",
        "clusters/{id}/pending-pods",
        "clusters/{id}/kubeconfig-secrets",
        "sites/{id}/exchange",
        "placements",
        "simulations",
        "runs/{id}/log",
        "runs/{id}/state",
        *BOOT_REPORTS,
    )
    silent = {f"POST /v1/{path}" for path in quiet_paths}
    # What a run does stands in its log and in the audit record of its end.
    silent |= {"DELETE /v1/runs/{id}/state", "PUT /v1/runs/{id}/lock", "DELETE /v1/runs/{id}/lock"}
    assert {route.name for route in routes if route.method != "GET" and not route.audited} == silent


def test_only_answers_made_for_secrets_have_secret_fields(document_path):
    document = json.loads(document_path.read_text(encoding="utf-8"))
    answers = {
        "ClientSecretView",
        "BootstrapAnswer",
        "KubeconfigView",
        "SecretsAnswer",
        "SiteCredentialsView",
        "RunTask",
    }
    attributes = {"AwsAttributes", "AttributesPatch", "CudoAttributes", "CudoAttributesPatch"}
    inputs = {"ClusterCreate", "MemberReport", "ReadyReport", *attributes}
    names_alone = {"CloudAccountView", "ZoneSubnets", "ClusterPatch", "ClusterView", "ObservationAnswer"}
    names_alone |= {"EksSettings", "EksSettingsPatch", "NodeEnvironmentView"}
    names = re.compile("secret|password|kubeconfig|private", re.IGNORECASE)
    schemas_with_secrets = {
        name
        for name, schema in document["components"]["schemas"].items()
        if any(names.search(field) for field in schema.get("properties", {}))
    }
    assert schemas_with_secrets == answers | inputs | names_alone
    view = document["components"]["schemas"]["CloudAccountView"]["properties"]
    assert [field for field in view if names.search(field)] == ["secrets"]
