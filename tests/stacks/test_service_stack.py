"""The service stack, read off its template."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from local.functions.patterns import any_filter
from stacks.functions import FUNCTIONS
from stacks.routes import routes
from stacks.workflows import documents, text
from stockyard.adapters.dynamodb import codec, stream
from stockyard.domain.records import NodeClaim
from stockyard.lifecycle.phases import PROCEDURES
from stockyard.operations.scheduler.wake import Changes
from stockyard.settings import Settings, read

ROOT = Path(__file__).parents[2]
NAMES = [spec.name for spec in FUNCTIONS]
ASYNCHRONOUS = ["relay", "scheduler", "autoscaler", "disruptor", "reaper", "requests", "catalog"]


def _ref(value: dict[str, Any]) -> str:
    return str(value["Fn::GetAtt"][0] if "Fn::GetAtt" in value else value["Ref"])


def test_twenty_functions_run_on_arm_and_python_3_13(assembly: Any) -> None:
    functions = assembly.of_type("AWS::Lambda::Function")
    assert len(functions) == len(NAMES) == 20
    for function in functions.values():
        assert function["Properties"]["Architectures"] == ["arm64"]
        assert function["Properties"]["Runtime"] == "python3.13"
        assert len(function["Properties"]["Layers"]) == 2


def test_each_function_has_own_role_and_log_group(assembly: Any) -> None:
    roles, groups = set(), set()
    for name in NAMES:
        _, function = assembly.function(name)
        roles.add(_ref(function["Role"]))
        group = _ref(function["LoggingConfig"]["LogGroup"])
        groups.add(group)
        properties = assembly.service["Resources"][group]["Properties"]
        assert properties["LogGroupName"] == f"/aws/lambda/stockyard-dev-{name.replace('_', '-')}"
    assert len(roles) == len(groups) == 20


def test_every_log_group_has_retention(assembly: Any) -> None:
    assert {
        log_group["Properties"]["RetentionInDays"] for log_group in assembly.of_type("AWS::Logs::LogGroup").values()
    } == {14}


@pytest.mark.parametrize("name", NAMES)
def test_asynchronous_functions_have_failure_queue_with_alarm(assembly: Any, name: str) -> None:
    logical_id, _ = assembly.function(name)
    destinations = [
        _ref(config["Properties"]["DestinationConfig"]["OnFailure"]["Destination"])
        for config in assembly.of_type("AWS::Lambda::EventInvokeConfig").values()
        if _ref(config["Properties"]["FunctionName"]) == logical_id
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
def test_function_environment_equals_settings_fields(assembly: Any, name: str) -> None:
    variables = assembly.function(name)[1]["Environment"]["Variables"]
    names = {key for key in variables if key.startswith("STOCKYARD_")}
    expected = {f"STOCKYARD_{field.name.upper()}" for field in fields(Settings)}
    elsewhere = {
        "STOCKYARD_ORIGIN_KEY_HASHES": "a stage with CloudFront",
        "STOCKYARD_OFFERS_TRIALS": "the local cloud",
        "STOCKYARD_STAND_IN_HOSTS": "the local cloud",
        "STOCKYARD_VAULT_URL": "the local cloud",
    }
    assert names == expected - set(elsewhere)
    settings = read({key: value if isinstance(value, str) else "reference" for key, value in variables.items()})
    assert (settings.table, settings.bus, settings.stage) == ("stockyard-dev", "stockyard-dev", "dev")
    assert settings.page_key_secret == "stockyard/dev/page-key"
    assert settings.machine_key_secret == "stockyard/dev/machine-key"
    assert variables["POWERTOOLS_SERVICE_NAME"] == name
    assert variables["PYDANTIC_DISABLE_PLUGINS"] == "__all__"


def test_workflows_begin_with_the_prefix_in_the_environment(assembly: Any) -> None:
    variables = assembly.function("relay")[1]["Environment"]["Variables"]
    names = {
        machine["Properties"]["StateMachineName"]
        for machine in assembly.of_type("AWS::StepFunctions::StateMachine").values()
    }
    prefix = variables["STOCKYARD_WORKFLOW_PREFIX"]["Fn::Join"][1][-1].removeprefix(":stateMachine:")
    assert {prefix + procedure.workflow for procedure in PROCEDURES.values()} == names


def test_routes_invoke_their_function_and_only_open_routes_skip_authorizer(assembly: Any) -> None:
    (authorizer,) = assembly.of_type("AWS::ApiGatewayV2::Authorizer")
    functions, unguarded = {}, set()
    for resource in assembly.of_type("AWS::ApiGatewayV2::Route").values():
        properties = resource["Properties"]
        integration = properties["Target"]["Fn::Join"][1][1]["Ref"]
        function = _ref(assembly.service["Resources"][integration]["Properties"]["IntegrationUri"])
        functions[properties["RouteKey"]] = function
        if properties["AuthorizationType"] == "NONE":
            unguarded.add(properties["RouteKey"])
        else:
            assert properties["AuthorizationType"] == "JWT"
            assert properties["AuthorizerId"] == {"Ref": authorizer}
    assert functions == {route.key: assembly.function(route.function)[0] for route in routes()}
    assert len(functions) == 115
    assert unguarded == {
        "GET /v1/health",
        "GET /v1/openapi.json",
        "GET /v1/docs",
        "DELETE /v1/runs/{id}/lock",
        "DELETE /v1/runs/{id}/state",
        "GET /v1/runs/{id}/state",
        "POST /v1/runs/{id}/begin",
        "POST /v1/runs/{id}/end",
        "POST /v1/runs/{id}/log",
        "POST /v1/runs/{id}/state",
        "PUT /v1/runs/{id}/lock",
        "POST /v1/clusters/{id}/bootstrap",
        "POST /v1/clusters/{id}/boot-reports",
        "POST /v1/clusters/{id}/snapshot-reports",
        "POST /v1/node-claims/{id}/boot-reports",
        "POST /v1/node-claims/{id}/interruptions",
        "POST /v1/node-claims/{id}/join",
        "POST /v1/node-claims/{id}/member-reports",
        "$default",
    }


def test_authorizer_checks_issuer_and_audience(assembly: Any) -> None:
    (authorizer,) = assembly.of_type("AWS::ApiGatewayV2::Authorizer").values()
    assert authorizer["Properties"]["JwtConfiguration"] == {
        "Audience": ["stockyard"],
        "Issuer": "https://keycloak.example.com/realms/stockyard",
    }
    assert authorizer["Properties"]["IdentitySource"] == ["$request.header.Authorization"]


def test_integrations_use_payload_2_and_api_may_invoke_functions(assembly: Any) -> None:
    for integration in assembly.of_type("AWS::ApiGatewayV2::Integration").values():
        assert integration["Properties"]["PayloadFormatVersion"] == "2.0"
    callers = [
        _ref(permission["Properties"]["FunctionName"])
        for permission in assembly.of_type("AWS::Lambda::Permission").values()
        if permission["Properties"]["Principal"] == "apigateway.amazonaws.com"
    ]
    assert sorted(callers) == sorted(assembly.function(name)[0] for name in {route.function for route in routes()})


def test_http_api_throttles_and_access_log_has_no_token(assembly: Any) -> None:
    (stage,) = assembly.of_type("AWS::ApiGatewayV2::Stage").values()
    settings = stage["Properties"]["DefaultRouteSettings"]
    assert (settings["ThrottlingRateLimit"], settings["ThrottlingBurstLimit"]) == (100, 200)
    line = json.loads(stage["Properties"]["AccessLogSettings"]["Format"])
    assert not [value for value in line.values() if re.search(r"header|query|body|claims", value, re.IGNORECASE)]


def test_routes_of_strangers_and_of_machines_have_limits_of_their_own(assembly: Any) -> None:
    ((logical, stage),) = assembly.of_type("AWS::ApiGatewayV2::Stage").items()
    rates = {key: limits["ThrottlingRateLimit"] for key, limits in stage["Properties"]["RouteSettings"].items()}
    expected = {route.key: 20 if route.open_because else 100 for route in routes()}
    own = {route.key for route in routes() if route.open_because or route.function == "machines"}
    assert {"$default", "GET /v1/health", "POST /v1/clusters/{id}/observations"} < own == set(rates)
    assert rates == {key: expected[key] for key in own}
    # A stage refuses settings of a route that is not there yet.
    resources = assembly.of_type("AWS::ApiGatewayV2::Route")
    first = {resources[name]["Properties"]["RouteKey"] for name in stage["DependsOn"] if name in resources}
    assert own <= first, logical


def _reader(assembly: Any, name: str) -> dict[str, Any]:
    mappings = [mapping["Properties"] for mapping in assembly.of_type("AWS::Lambda::EventSourceMapping").values()]
    assert len(mappings) == 2, "the stream has two readers, and no third"
    (properties,) = (mapping for mapping in mappings if _ref(mapping["FunctionName"]) == assembly.function(name)[0])
    mapping_properties: dict[str, Any] = properties
    return mapping_properties


WAKES: list[tuple[dict[str, str], dict[str, str]]] = [
    ({"kind": "NodeClaim", "due_at": "t"}, {"kind": "NodeClaim"}),
    ({"kind": "NodeProvider"}, {"kind": "NodeEnvironment"}),
    ({"kind": "Counter", "sk": "capacity/npr_1/small", "moved": "down"}, {"kind": "Counter", "sk": "capacity/npr_1/x"}),
    ({"kind": "Cluster", "status": "ready"}, {"kind": "Cluster", "status": "preparing"}),
    ({"kind": "Fact", "sk": "tenant/allowed-node-types"}, {"kind": "Fact", "sk": "clu_1/observed"}),
]
"""What wakes the scheduler, beside something like it that does not."""
QUIET = ({"kind": "Counter", "sk": "capacity/npr_1/small", "moved": "up"}, {"kind": "Counter", "moved": "down"})


def test_scheduler_stream_filter_passes_waiting_claims_and_freed_capacity(assembly: Any) -> None:
    def image(changes: dict[str, str]) -> dict[str, Any]:
        attributes = {"tenant": "acme", "sk": "x", **changes}
        claim = codec.to_item("acme", NodeClaim("x", "one", "t", "t")) if changes["kind"] == "NodeClaim" else {}
        return {"dynamodb": {"NewImage": {**claim, **{name: {"S": value} for name, value in attributes.items()}}}}

    def roomier(changes: dict[str, str]) -> frozenset[str]:
        return Changes.of(stream.changes([image(changes)])).roomier

    properties = _reader(assembly, "scheduler")
    filters = [item["Pattern"] for item in properties["FilterCriteria"]["Filters"]]
    assert len(filters) == len(WAKES) <= 5, "a mapping has at most five"
    for wakes, like_it in WAKES:
        assert any_filter(filters, image(wakes)), wakes
        assert not any_filter(filters, image(like_it)), like_it
        assert roomier(wakes) == (set() if wakes["kind"] == "NodeClaim" else {"acme"})
        assert roomier(like_it) == set()
    assert not any(any_filter(filters, image(change)) for change in QUIET)
    assert (properties["BatchSize"], properties.get("MaximumBatchingWindowInSeconds")) == (1000, None)
    assert "OnFailure" in properties["DestinationConfig"]


def test_relay_stream_filter_passes_new_outbox_items(assembly: Any) -> None:
    properties = _reader(assembly, "relay")
    (pattern,) = properties["FilterCriteria"]["Filters"]
    assert json.loads(pattern["Pattern"]) == {
        "eventName": ["INSERT"],
        "dynamodb": {"NewImage": {"kind": {"S": ["Outbox"]}}},
    }
    assert properties["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert "OnFailure" in properties["DestinationConfig"]


@pytest.mark.parametrize(("name", "seconds"), [("relay", 3600), ("scheduler", 600)])
def test_stream_readers_retry_until_maximum_record_age(assembly: Any, name: str, seconds: int) -> None:
    properties = _reader(assembly, name)
    assert properties["MaximumRetryAttempts"] == -1, "for as long as the record's age allows"
    assert properties["MaximumRecordAgeInSeconds"] == seconds
    assert properties["BisectBatchOnFunctionError"] is True


def test_schedules_and_request_rule(assembly: Any) -> None:
    rules = {}
    for rule in assembly.of_type("AWS::Events::Rule").values():
        (target,) = rule["Properties"]["Targets"]
        assert "DeadLetterConfig" in target
        rules[rule["Properties"]["Name"]] = (_ref(target["Arn"]), rule["Properties"])
    expected = {
        "relay": "rate(1 minute)",
        "scheduler": "rate(1 minute)",
        "autoscaler": "rate(1 minute)",
        "disruptor": "rate(1 minute)",
        "reaper": "rate(5 minutes)",
        "catalog": "rate(15 minutes)",
    }
    for name, rate in expected.items():
        function, properties = rules.pop(f"stockyard-dev-{name}-schedule")
        assert (function, properties["ScheduleExpression"]) == (assembly.function(name)[0], rate)
    function, properties = rules.pop("stockyard-dev-requests")
    assert function == assembly.function("requests")[0]
    assert properties["EventPattern"] == {"source": ["stockyard.request"]}
    bus = {"Ref": next(iter(assembly.of_type("AWS::Events::EventBus")))}
    assert properties["EventBusName"] == bus
    for detail_type in ("Pool", "NodeClaim", "Cluster", "PendingPods", "UnclaimedNodes"):
        function, properties = rules.pop(f"stockyard-dev-autoscaler-{detail_type.lower()}")
        assert function == assembly.function("autoscaler")[0]
        pattern = properties["EventPattern"]
        assert (pattern["source"], pattern["detail-type"]) == (["stockyard"], [detail_type])
        assert properties["EventBusName"] == bus
    for detail_type in ("UnreadyNodes", "SumsBehind"):
        function, properties = rules.pop(f"stockyard-dev-reaper-{detail_type.lower()}")
        assert function == assembly.function("reaper")[0]
        assert (properties["EventPattern"]["detail-type"], properties["EventBusName"]) == ([detail_type], bus)
    function, properties = rules.pop("stockyard-dev-catalog-cluster")
    assert function == assembly.function("catalog")[0]
    assert properties["EventPattern"]["detail"] == {"phase": {"after": ["preparing"]}, "reason": ["Accepted"]}
    assert rules == {}


def test_workflow_definitions_have_every_placeholder_filled(assembly: Any) -> None:
    machines = assembly.of_type("AWS::StepFunctions::StateMachine").values()
    written = {text(document) for document in documents().values()}
    deployed = set()
    for machine in machines:
        properties = machine["Properties"]
        key = properties["DefinitionS3Location"]["Key"]
        content = (assembly.folder / f"asset.{key}").read_text()
        deployed.add(content)
        assert set(re.findall(r"\$\{(\w+)\}", content)) == set(properties["DefinitionSubstitutions"])
        logging = properties["LoggingConfiguration"]
        assert (logging["Level"], logging["IncludeExecutionData"]) == ("ALL", False)
        assert properties["TracingConfiguration"] == {"Enabled": True}
    assert deployed == written


def test_phase_timeout_is_below_task_timeout(assembly: Any) -> None:
    limit = assembly.function("cluster_phases")[1]["Timeout"]
    for machine, document in documents().items():
        for name, state in document["States"].items():
            if state["Type"] == "Task":
                assert state["TimeoutSeconds"] > limit, f"{machine}: {name}"


def test_page_key_is_generated_and_is_the_only_secret_that_goes_with_the_service(assembly: Any) -> None:
    (secret,) = assembly.of_type("AWS::SecretsManager::Secret").values()
    assert secret["Properties"]["Name"] == "stockyard/dev/page-key"
    assert secret["Properties"]["GenerateSecretString"]["PasswordLength"] >= 32
    assert "SecretString" not in secret["Properties"]


def test_service_stack_has_no_resource_with_idle_cost(assembly: Any) -> None:
    types = {resource["Type"] for resource in assembly.service["Resources"].values()}
    assert not {kind for kind in types if re.match(r"AWS::(EC2|KMS|RDS|ECS|ElasticLoadBalancing)", kind)}
    text = json.dumps(assembly.service)
    assert "ProvisionedConcurrencyConfig" not in text
    assert "ReservedConcurrentExecutions" not in text


def test_service_stack_has_no_custom_resource(assembly: Any) -> None:
    kinds = {resource["Type"] for resource in assembly.service["Resources"].values()}
    assert not {kind for kind in kinds if kind.startswith("Custom::") or kind == "AWS::CloudFormation::CustomResource"}


def test_function_asset_has_own_folder_and_declared_extras_only(assembly: Any) -> None:
    from stacks.constructs.layers import BESIDE

    for name in NAMES:
        beside = (f"{extra}/" if (ROOT / extra).is_dir() else extra for extra in BESIDE.get(name, ()))
        folders = (f"functions/{name}/", *beside)
        key = assembly.function(name)[1]["Code"]["S3Key"].removesuffix(".zip")
        root = assembly.folder / f"asset.{key}"
        files = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
        assert all(file == "functions/__init__.py" or file.startswith(folders) for file in files), files
        assert all(any(file.startswith(folder) for file in files) for folder in folders), files
        assert not [file for file in files if "__pycache__" in file]


def test_logical_ids_of_stateful_resources_are_stable(assembly: Any) -> None:
    """A new id means a new API address, a lost queue, a new key. Change them only on purpose."""
    stateful = {
        "AWS::ApiGatewayV2::Api",
        "AWS::Events::EventBus",
        "AWS::SQS::Queue",
        "AWS::SecretsManager::Secret",
        "AWS::StepFunctions::StateMachine",
    }
    names = {name for name, resource in assembly.service["Resources"].items() if resource["Type"] in stateful}
    assert names == {
        "HttpApi4E1D4184",
        "TriggersBus6827132D",
        "FunctionsRelayFailures47AD2372",
        "FunctionsSchedulerFailures7139FC0F",
        "FunctionsAutoscalerFailuresA982D3C7",
        "FunctionsDisruptorFailures8DDE2756",
        "FunctionsReaperFailures8BA05DE6",
        "FunctionsRequestsFailures9E0FCFCF",
        "FunctionsCatalogFailures21D20FDF",
        "PageKey61DE4612",
        "WorkflowsProvisionClusterD3D3CCDB",
        "WorkflowsDeleteCluster0B72E991",
        "WorkflowsProvisionStandaloneCluster00092C45",
        "WorkflowsDeleteStandaloneClusterF33190BA",
        "WorkflowsProvisionManagedClusterACABC99B",
        "WorkflowsDeleteManagedClusterACB821CB",
        "WorkflowsChangeManagedCluster4DC8FB78",
        "WorkflowsUpgradeManagedClusterCD7DF71B",
        "WorkflowsChangeBalancedClusterF10EEFCA",
        "WorkflowsUpgradeBalancedCluster89D6295D",
        "WorkflowsRetagClusterC85DFCA6",
        "WorkflowsProvisionNode9F2BC81C",
        "WorkflowsDeleteNodeC12963D8",
        "WorkflowsPowerNodeE3F32B5A",
    }
