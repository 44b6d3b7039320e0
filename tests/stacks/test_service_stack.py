"""The service stack, read off its template."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from functions.relay.handler import OUTBOX_REFUSED
from local.patterns import any_filter
from stacks.constructs.layers import BESIDE
from stacks.functions import FUNCTIONS, OPEN_ROUTES, ROUTES
from stockyard.settings import Settings, read
from stockyard.wiring import changes_of

NAMES = [spec.name for spec in FUNCTIONS]
ASYNCHRONOUS = ["relay", "scheduler", "reaper", "requests", "catalog"]
WORKFLOWS = Path(__file__).resolve().parents[2] / "stacks" / "workflows"


def _ref(value: dict[str, Any]) -> str:
    return str(value["Fn::GetAtt"][0] if "Fn::GetAtt" in value else value["Ref"])


def test_fourteen_functions_on_arm_and_python_3_13(assembly: Any) -> None:
    functions = assembly.of_type("AWS::Lambda::Function")
    assert len(functions) == len(NAMES) == 14
    for one in functions.values():
        assert one["Properties"]["Architectures"] == ["arm64"]
        assert one["Properties"]["Runtime"] == "python3.13"
        assert len(one["Properties"]["Layers"]) == 2


def test_each_function_has_a_role_and_a_log_group_of_its_own(assembly: Any) -> None:
    roles, groups = set(), set()
    for name in NAMES:
        _, function = assembly.function(name)
        roles.add(_ref(function["Role"]))
        group = _ref(function["LoggingConfig"]["LogGroup"])
        groups.add(group)
        properties = assembly.service["Resources"][group]["Properties"]
        assert properties["LogGroupName"] == f"/aws/lambda/stockyard-dev-{name.replace('_', '-')}"
    assert len(roles) == len(groups) == 14


def test_every_log_group_forgets(assembly: Any) -> None:
    assert {one["Properties"]["RetentionInDays"] for one in assembly.of_type("AWS::Logs::LogGroup").values()} == {14}


@pytest.mark.parametrize("name", NAMES)
def test_what_nobody_waits_for_has_a_failure_queue_with_an_alarm(assembly: Any, name: str) -> None:
    logical_id, _ = assembly.function(name)
    destinations = [
        _ref(one["Properties"]["DestinationConfig"]["OnFailure"]["Destination"])
        for one in assembly.of_type("AWS::Lambda::EventInvokeConfig").values()
        if _ref(one["Properties"]["FunctionName"]) == logical_id
    ]
    assert len(destinations) == (1 if name in ASYNCHRONOUS else 0)
    watched = {
        _ref(dimension["Value"])
        for alarm in assembly.of_type("AWS::CloudWatch::Alarm").values()
        for dimension in alarm["Properties"].get("Dimensions", [])
        if dimension["Name"] == "QueueName"
    }
    assert set(destinations) <= watched


@pytest.mark.parametrize("name", NAMES)
def test_the_environment_is_what_the_settings_read(assembly: Any, name: str) -> None:
    variables = assembly.function(name)[1]["Environment"]["Variables"]
    ours = {key for key in variables if key.startswith("STOCKYARD_")}
    assert ours == {f"STOCKYARD_{field.name.upper()}" for field in fields(Settings)}
    settings = read({key: value if isinstance(value, str) else "reference" for key, value in variables.items()})
    assert (settings.table, settings.bus, settings.stage) == ("stockyard-dev", "stockyard-dev", "dev")
    assert settings.page_key_secret == "stockyard/dev/page-key"
    assert variables["POWERTOOLS_SERVICE_NAME"] == name


def test_workflow_arns_in_the_environment_are_those_of_the_workflows(assembly: Any) -> None:
    variables = assembly.function("relay")[1]["Environment"]["Variables"]
    names = {
        one["Properties"]["StateMachineName"] for one in assembly.of_type("AWS::StepFunctions::StateMachine").values()
    }
    for key in ("STOCKYARD_PROVISION_WORKFLOW", "STOCKYARD_DELETE_WORKFLOW"):
        end = variables[key]["Fn::Join"][1][-1]
        assert end.removeprefix(":stateMachine:") in names


def test_routes_are_those_of_the_contract_and_only_the_open_ones_take_no_token(assembly: Any) -> None:
    (authorizer,) = assembly.of_type("AWS::ApiGatewayV2::Authorizer")
    found = {}
    for one in assembly.of_type("AWS::ApiGatewayV2::Route").values():
        properties = one["Properties"]
        integration = properties["Target"]["Fn::Join"][1][1]["Ref"]
        function = _ref(assembly.service["Resources"][integration]["Properties"]["IntegrationUri"])
        found[properties["RouteKey"]] = function
        if properties["RouteKey"] in OPEN_ROUTES:
            assert properties["AuthorizationType"] == "NONE"
        else:
            assert properties["AuthorizationType"] == "JWT"
            assert properties["AuthorizerId"] == {"Ref": authorizer}
    assert found == {route: assembly.function(name)[0] for name, routes in ROUTES.items() for route in routes}
    assert len(found) == 49
    assert set(OPEN_ROUTES) == {
        "GET /v1/health",
        "POST /v1/clusters/{id}/bootstrap",
        "POST /v1/node-claims/{id}/join",
        "$default",
    }


def test_the_authorizer_checks_issuer_and_audience(assembly: Any) -> None:
    (authorizer,) = assembly.of_type("AWS::ApiGatewayV2::Authorizer").values()
    assert authorizer["Properties"]["JwtConfiguration"] == {
        "Audience": ["stockyard"],
        "Issuer": "https://keycloak.example.com/realms/stockyard",
    }
    assert authorizer["Properties"]["IdentitySource"] == ["$request.header.Authorization"]


def test_integrations_speak_payload_2_and_the_api_may_call_them(assembly: Any) -> None:
    for one in assembly.of_type("AWS::ApiGatewayV2::Integration").values():
        assert one["Properties"]["PayloadFormatVersion"] == "2.0"
    callers = [
        _ref(one["Properties"]["FunctionName"])
        for one in assembly.of_type("AWS::Lambda::Permission").values()
        if one["Properties"]["Principal"] == "apigateway.amazonaws.com"
    ]
    assert sorted(callers) == sorted(assembly.function(name)[0] for name in ROUTES)


def test_the_stage_throttles_and_its_log_cannot_hold_a_token(assembly: Any) -> None:
    (stage,) = assembly.of_type("AWS::ApiGatewayV2::Stage").values()
    settings = stage["Properties"]["DefaultRouteSettings"]
    assert (settings["ThrottlingRateLimit"], settings["ThrottlingBurstLimit"]) == (50, 100)
    line = json.loads(stage["Properties"]["AccessLogSettings"]["Format"])
    assert not [value for value in line.values() if re.search(r"header|query|body|claims", value, re.IGNORECASE)]


def _reader(assembly: Any, name: str) -> dict[str, Any]:
    mappings = [one["Properties"] for one in assembly.of_type("AWS::Lambda::EventSourceMapping").values()]
    assert len(mappings) == 2, "the stream has two readers, and no third"
    (properties,) = (one for one in mappings if _ref(one["FunctionName"]) == assembly.function(name)[0])
    found: dict[str, Any] = properties
    return found


WAKES: list[tuple[dict[str, str], dict[str, str]]] = [
    ({"kind": "NodeClaim", "due_at": "t"}, {"kind": "NodeClaim"}),
    ({"kind": "NodeProvider"}, {"kind": "NodeEnvironment"}),
    ({"kind": "Counter", "sk": "capacity/npr_1/small", "moved": "down"}, {"kind": "Counter", "sk": "capacity/npr_1/x"}),
    ({"kind": "Cluster", "status": "ready"}, {"kind": "Cluster", "status": "preparing"}),
    ({"kind": "Fact", "sk": "tenant/allowed-node-types"}, {"kind": "Fact", "sk": "clu_1/observed"}),
]
"""What wakes the scheduler, beside something like it that does not."""
QUIET = ({"kind": "Counter", "sk": "capacity/npr_1/small", "moved": "up"}, {"kind": "Counter", "moved": "down"})


def test_the_scheduler_reads_only_claims_that_wait_and_what_makes_room(assembly: Any) -> None:
    def image(given: dict[str, str]) -> dict[str, Any]:
        attributes = {"tenant": "acme", "sk": "x", **given}
        return {"dynamodb": {"NewImage": {name: {"S": value} for name, value in attributes.items()}}}

    properties = _reader(assembly, "scheduler")
    filters = [one["Pattern"] for one in properties["FilterCriteria"]["Filters"]]
    assert len(filters) == len(WAKES) <= 5, "a mapping has at most five"
    for wakes, like_it in WAKES:
        assert any_filter(filters, image(wakes)), wakes
        assert not any_filter(filters, image(like_it)), like_it
        assert changes_of([image(wakes)]).roomier == (set() if wakes["kind"] == "NodeClaim" else {"acme"})
        assert changes_of([image(like_it)]).roomier == set()
    assert not any(any_filter(filters, image(one)) for one in QUIET)
    assert (properties["BatchSize"], properties["MaximumBatchingWindowInSeconds"]) == (1000, 1)
    assert "OnFailure" in properties["DestinationConfig"]


def test_the_relay_reads_only_new_outbox_items(assembly: Any) -> None:
    properties = _reader(assembly, "relay")
    (pattern,) = properties["FilterCriteria"]["Filters"]
    assert json.loads(pattern["Pattern"]) == {
        "eventName": ["INSERT"],
        "dynamodb": {"NewImage": {"kind": {"S": ["Outbox"]}}},
    }
    assert properties["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert "OnFailure" in properties["DestinationConfig"]


@pytest.mark.parametrize(("name", "seconds"), [("relay", 3600), ("scheduler", 600)])
def test_the_stream_is_read_again_until_records_are_too_old(assembly: Any, name: str, seconds: int) -> None:
    properties = _reader(assembly, name)
    assert properties["MaximumRetryAttempts"] == -1, "for as long as the record's age allows"
    assert properties["MaximumRecordAgeInSeconds"] == seconds
    assert properties["BisectBatchOnFunctionError"] is True


def test_schedules_and_the_rule_of_requests(assembly: Any) -> None:
    rules = {}
    for one in assembly.of_type("AWS::Events::Rule").values():
        (target,) = one["Properties"]["Targets"]
        assert "DeadLetterConfig" in target
        rules[one["Properties"]["Name"]] = (_ref(target["Arn"]), one["Properties"])
    expected = {
        "relay": "rate(1 minute)",
        "scheduler": "rate(1 minute)",
        "reaper": "rate(5 minutes)",
        "catalog": "rate(15 minutes)",
    }
    for name, rate in expected.items():
        function, properties = rules.pop(f"stockyard-dev-{name}-schedule")
        assert (function, properties["ScheduleExpression"]) == (assembly.function(name)[0], rate)
    function, properties = rules.pop("stockyard-dev-requests")
    assert function == assembly.function("requests")[0]
    assert properties["EventPattern"] == {
        "source": ["stockyard.request"],
        "detail-type": ["CreateCluster", "ChangeCluster", "DeleteCluster"],
    }
    assert properties["EventBusName"] == {"Ref": next(iter(assembly.of_type("AWS::Events::EventBus")))}
    assert rules == {}


def test_workflows_are_the_documents_with_every_placeholder_filled(assembly: Any) -> None:
    machines = assembly.of_type("AWS::StepFunctions::StateMachine").values()
    documents = {path.read_text() for path in WORKFLOWS.glob("*.asl.json")}
    deployed = set()
    for one in machines:
        properties = one["Properties"]
        key = properties["DefinitionS3Location"]["Key"]
        text = (assembly.folder / f"asset.{key}").read_text()
        deployed.add(text)
        assert set(re.findall(r"\$\{(\w+)\}", text)) == set(properties["DefinitionSubstitutions"])
        logging = properties["LoggingConfiguration"]
        assert (logging["Level"], logging["IncludeExecutionData"]) == ("ALL", False)
        assert properties["TracingConfiguration"] == {"Enabled": True}
    assert deployed == documents


def test_a_phase_ends_before_its_task_does(assembly: Any) -> None:
    limit = assembly.function("cluster_phases")[1]["Timeout"]
    for path in WORKFLOWS.glob("*.asl.json"):
        document = json.loads(path.read_text())
        for name, state in document["States"].items():
            if state["Type"] == "Task":
                assert state["TimeoutSeconds"] > limit, f"{path.name}: {name}"


def test_alarms_watch_the_sweep_and_the_outbox(assembly: Any) -> None:
    alarms = {
        one["Properties"]["AlarmName"]: one["Properties"] for one in assembly.of_type("AWS::CloudWatch::Alarm").values()
    }
    found = assembly.of_type("AWS::Logs::MetricFilter").values()
    assert len(found) == 2
    for name, message, function in (
        ("sweep-stopped", "SweepStopped", "reaper"),
        ("outbox-refused", OUTBOX_REFUSED, "relay"),
    ):
        alarm = alarms[f"stockyard-dev-{name}"]
        wanted = f'{{ $.message = "{message}" }}'
        (lines,) = (one["Properties"] for one in found if one["Properties"]["FilterPattern"] == wanted)
        (transformation,) = lines["MetricTransformations"]
        assert _ref(lines["LogGroupName"]) == _ref(assembly.function(function)[1]["LoggingConfig"]["LogGroup"])
        assert (alarm["Namespace"], alarm["MetricName"]) == ("Stockyard/dev", message)
        assert transformation["MetricNamespace"] == alarm["Namespace"]
        assert transformation["MetricName"] == alarm["MetricName"]
    missing = alarms["stockyard-dev-sweep-missing"]
    assert (missing["MetricName"], missing["TreatMissingData"]) == ("Invocations", "breaching")
    assert _ref(missing["Dimensions"][0]["Value"]) == assembly.function("reaper")[0]
    assert len(assembly.of_type("AWS::CloudWatch::Dashboard")) == 1


def test_the_page_key_is_generated_and_no_other_secret_is_made(assembly: Any) -> None:
    (secret,) = assembly.of_type("AWS::SecretsManager::Secret").values()
    assert secret["Properties"]["Name"] == "stockyard/dev/page-key"
    assert secret["Properties"]["GenerateSecretString"]["PasswordLength"] >= 32
    assert "SecretString" not in secret["Properties"]


def test_nothing_costs_money_while_idle(assembly: Any) -> None:
    types = {one["Type"] for one in assembly.service["Resources"].values()}
    assert not {kind for kind in types if re.match(r"AWS::(EC2|KMS|RDS|ECS|ElasticLoadBalancing)", kind)}
    text = json.dumps(assembly.service)
    assert "ProvisionedConcurrencyConfig" not in text
    assert "ReservedConcurrentExecutions" not in text


def test_no_custom_resource_runs_code_of_others(assembly: Any) -> None:
    kinds = {one["Type"] for one in assembly.service["Resources"].values()}
    assert not {kind for kind in kinds if kind.startswith("Custom::") or kind == "AWS::CloudFormation::CustomResource"}


def test_a_function_carries_only_its_own_folder_and_what_stands_beside_it(assembly: Any) -> None:
    for name in NAMES:
        folders = (f"functions/{name}/", *(f"{folder}/" for folder in BESIDE.get(name, ())))
        key = assembly.function(name)[1]["Code"]["S3Key"].removesuffix(".zip")
        root = assembly.folder / f"asset.{key}"
        files = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
        assert all(file == "functions/__init__.py" or file.startswith(folders) for file in files), files
        assert all(any(file.startswith(folder) for file in files) for folder in folders), files
        assert not [file for file in files if "__pycache__" in file]


def test_logical_ids_of_what_callers_know_are_stable(assembly: Any) -> None:
    """A new id means a new API address, a lost queue, a new key. Change them only on purpose."""
    stateful = {
        "AWS::ApiGatewayV2::Api",
        "AWS::Events::EventBus",
        "AWS::SQS::Queue",
        "AWS::SecretsManager::Secret",
        "AWS::StepFunctions::StateMachine",
    }
    found = {name for name, one in assembly.service["Resources"].items() if one["Type"] in stateful}
    assert found == {
        "HttpApi4E1D4184",
        "TriggersBus6827132D",
        "FunctionsRelayFailures47AD2372",
        "FunctionsSchedulerFailures7139FC0F",
        "FunctionsReaperFailures8BA05DE6",
        "FunctionsRequestsFailures9E0FCFCF",
        "FunctionsCatalogFailures21D20FDF",
        "PageKey61DE4612",
        "WorkflowsProvisionClusterD3D3CCDB",
        "WorkflowsDeleteCluster0B72E991",
        "WorkflowsProvisionNode9F2BC81C",
        "WorkflowsDeleteNodeC12963D8",
        "WorkflowsPowerNodeE3F32B5A",
    }
