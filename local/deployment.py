"""Makes the resources of the template: in moto where moto has them, else in the parts of the local cloud."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from local.authorizer import JwtAuthorizer
from local.events import Rule, StreamMapping
from local.functions import Definition
from local.gateway import Route
from local.template import Made, Stack, TemplateError, load

NO_LOCAL_MEANING: Mapping[str, str] = {
    "AWS::CloudWatch::Alarm": "nobody is notified by a laptop",
    "AWS::CloudWatch::Dashboard": "there are no metrics to draw",
    "AWS::Logs::MetricFilter": "there are no metrics and alarms here",
    "AWS::Lambda::LayerVersion": "functions import the core and the installed packages from the tree",
    "AWS::Lambda::Permission": "the callers are parts of the local cloud; who may call is tested on the template",
    "AWS::SQS::QueuePolicy": "moto does not evaluate it; it is tested on the template",
}
"""Types that are skipped, and why. Any other type without a maker is an error."""


@dataclass(slots=True)
class Deployment:
    """What was found in the template, for the parts that run it. ``names`` maps function ARNs to names."""

    functions: dict[str, Definition] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)
    routes: list[Route] = field(default_factory=list)
    mappings: list[StreamMapping] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    invoke_configs: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    throttle: tuple[float, int] | None = None
    """Requests a second and at once."""


class Maker:
    """Makes one resource at a time. ``client(service)`` gives boto3 clients of Stockyard's own account."""

    def __init__(self, client: Callable[[str], Any], assembly: Path, api_url: str, account: str, region: str) -> None:
        self._client = client
        self._assembly = assembly
        self._api_url = api_url
        self._account = account
        self._region = region
        self._authorizers: dict[str, JwtAuthorizer] = {}
        self._integrations: dict[str, str] = {}
        self.deployment = Deployment()

    def __call__(self, kind: str, logical: str, properties: Mapping[str, Any]) -> Made:
        """See ``local.template.Maker``."""
        if kind in NO_LOCAL_MEANING:
            return Made(logical, {"Arn": f"arn:aws:local:::{logical}"})
        make = getattr(self, "_" + kind.removeprefix("AWS::").replace("::", "_").lower(), None)
        if make is None:
            raise TemplateError(f"the local cloud does not know {kind} ({logical})")
        made: Made = make(logical, properties)
        return made

    def _arn(self, service: str, rest: str) -> str:
        return f"arn:aws:{service}:{self._region}:{self._account}:{rest}"

    # --- state -------------------------------------------------------------------------------------------------------

    def _dynamodb_table(self, _logical: str, given: Mapping[str, Any]) -> Made:
        wanted = dict(given)
        stream = wanted.pop("StreamSpecification", None)
        if stream:
            wanted["StreamSpecification"] = {"StreamEnabled": True, **stream}
        recovery = wanted.pop("PointInTimeRecoverySpecification", None)
        expiry = wanted.pop("TimeToLiveSpecification", None)
        client = self._client("dynamodb")
        table = client.create_table(**wanted)["TableDescription"]
        name = table["TableName"]
        if recovery:
            client.update_continuous_backups(TableName=name, PointInTimeRecoverySpecification=recovery)
        if expiry:
            client.update_time_to_live(TableName=name, TimeToLiveSpecification=expiry)
        return Made(name, {"Arn": table["TableArn"], "StreamArn": table.get("LatestStreamArn", "")})

    def _secretsmanager_secret(self, _logical: str, given: Mapping[str, Any]) -> Made:
        client = self._client("secretsmanager")
        text = given.get("SecretString")
        if "GenerateSecretString" in given:
            text = client.get_random_password(**given["GenerateSecretString"])["RandomPassword"]
        made = client.create_secret(
            Name=given["Name"],
            SecretString=text or "",
            Description=given.get("Description", ""),
            Tags=given.get("Tags", []),
        )
        return Made(made["ARN"], {"Id": made["ARN"]})

    def _logs_loggroup(self, _logical: str, given: Mapping[str, Any]) -> Made:
        name = given["LogGroupName"]
        client = self._client("logs")
        client.create_log_group(logGroupName=name)
        if "RetentionInDays" in given:
            client.put_retention_policy(logGroupName=name, retentionInDays=given["RetentionInDays"])
        return Made(name, {"Arn": self._arn("logs", f"log-group:{name}:*")})

    def _sqs_queue(self, _logical: str, given: Mapping[str, Any]) -> Made:
        attributes = {
            name: json.dumps(value) if isinstance(value, dict) else str(value)
            for name, value in given.items()
            if name in {"MessageRetentionPeriod", "VisibilityTimeout", "RedrivePolicy"}
        }
        name = given["QueueName"]
        url = self._client("sqs").create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
        return Made(url, {"Arn": self._arn("sqs", name), "QueueName": name})

    def _iam_role(self, logical: str, given: Mapping[str, Any]) -> Made:
        name = given.get("RoleName") or f"Stockyard-{logical}"[:64]
        client = self._client("iam")
        role = client.create_role(
            RoleName=name,
            Path=given.get("Path", "/"),
            Description=given.get("Description", ""),
            AssumeRolePolicyDocument=json.dumps(given["AssumeRolePolicyDocument"]),
        )["Role"]
        for policy in given.get("Policies", ()):
            document = json.dumps(policy["PolicyDocument"])
            client.put_role_policy(RoleName=name, PolicyName=policy["PolicyName"], PolicyDocument=document)
        return Made(name, {"Arn": role["Arn"], "RoleId": role["RoleId"]})

    # --- functions and workflows -------------------------------------------------------------------------------------

    def _lambda_function(self, _logical: str, given: Mapping[str, Any]) -> Made:
        name = given["FunctionName"]
        arn = self._arn("lambda", f"function:{name}")
        variables = given.get("Environment", {}).get("Variables", {})
        self.deployment.functions[name] = Definition(
            name,
            given["Handler"],
            arn,
            dict(variables),
            float(given.get("Timeout", 3)),
            int(given.get("MemorySize", 128)),
        )
        self.deployment.roles[name] = given["Role"]
        return Made(name, {"Arn": arn})

    def _lambda_eventinvokeconfig(self, logical: str, given: Mapping[str, Any]) -> Made:
        self.deployment.invoke_configs[given["FunctionName"]] = given
        return Made(logical)

    def _lambda_eventsourcemapping(self, logical: str, given: Mapping[str, Any]) -> Made:
        self.deployment.mappings.append(StreamMapping.from_properties(given))
        return Made(logical)

    def _stepfunctions_statemachine(self, _logical: str, given: Mapping[str, Any]) -> Made:
        if "DefinitionS3Location" in given:
            text = (self._assembly / f"asset.{given['DefinitionS3Location']['Key']}").read_text(encoding="utf-8")
        else:
            text = given["DefinitionString"]
        for key, value in given.get("DefinitionSubstitutions", {}).items():
            text = text.replace(f"${{{key}}}", str(value))
        made = self._client("stepfunctions").create_state_machine(
            name=given["StateMachineName"], definition=text, roleArn=given["RoleArn"]
        )
        return Made(made["stateMachineArn"], {"Arn": made["stateMachineArn"], "Name": given["StateMachineName"]})

    # --- events ------------------------------------------------------------------------------------------------------

    def _events_eventbus(self, _logical: str, given: Mapping[str, Any]) -> Made:
        made = self._client("events").create_event_bus(Name=given["Name"])
        return Made(given["Name"], {"Arn": made["EventBusArn"], "Name": given["Name"]})

    def _events_rule(self, _logical: str, given: Mapping[str, Any]) -> Made:
        wanted = {
            k: given[k] for k in ("Name", "ScheduleExpression", "EventBusName", "State", "Description") if k in given
        }
        if "EventPattern" in given:
            wanted["EventPattern"] = json.dumps(given["EventPattern"])
        arn = self._client("events").put_rule(**wanted)["RuleArn"]
        self.deployment.rules.append(Rule.from_properties(arn, given))
        return Made(given["Name"], {"Arn": arn})

    def _events_eventbuspolicy(self, logical: str, _given: Mapping[str, Any]) -> Made:
        return Made(logical)

    # --- the API -----------------------------------------------------------------------------------------------------

    def _apigatewayv2_api(self, logical: str, _given: Mapping[str, Any]) -> Made:
        return Made(logical.lower(), {"ApiEndpoint": self._api_url, "ApiId": logical.lower()})

    def _apigatewayv2_stage(self, logical: str, given: Mapping[str, Any]) -> Made:
        if given["StageName"] != "$default":
            raise TemplateError(f"{logical}: only the stage $default is known here")
        limits = given["DefaultRouteSettings"]
        self.deployment.throttle = (float(limits["ThrottlingRateLimit"]), int(limits["ThrottlingBurstLimit"]))
        return Made(given["StageName"])

    def _apigatewayv2_authorizer(self, logical: str, given: Mapping[str, Any]) -> Made:
        jwt = given["JwtConfiguration"]
        self._authorizers[logical] = JwtAuthorizer(jwt["Issuer"], tuple(jwt["Audience"]))
        return Made(logical)

    def _apigatewayv2_integration(self, logical: str, given: Mapping[str, Any]) -> Made:
        if given["IntegrationType"] != "AWS_PROXY" or given["PayloadFormatVersion"] != "2.0":
            raise TemplateError(f"{logical}: only AWS_PROXY with payload format 2.0 is known here")
        self._integrations[logical] = given["IntegrationUri"].rsplit(":", 1)[-1]
        return Made(logical)

    def _apigatewayv2_route(self, logical: str, given: Mapping[str, Any]) -> Made:
        function = self._integrations[given["Target"].removeprefix("integrations/")]
        secured = given.get("AuthorizationType", "NONE") == "JWT"
        authorizer = self._authorizers[given["AuthorizerId"]] if secured else None
        self.deployment.routes.append(Route(given["RouteKey"], function, authorizer))
        return Made(logical)


def deploy(maker: Maker, assembly: Path, pseudo: Mapping[str, str], replacements: Mapping[str, str]) -> Deployment:
    """Make everything in the assembly's templates; returns what the other parts need."""
    exports: dict[str, str] = {}
    for template in load(assembly, replacements):
        exports |= Stack(template, pseudo, exports, maker).create()
    return maker.deployment
