"""Creates the resources of the template: in moto where moto supports them, otherwise in parts of the local cloud."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from local.functions.authorizer import JwtAuthorizer
from local.functions.events import Rule, StreamMapping
from local.functions.gateway import Route
from local.functions.processes import Definition
from local.template import CreatedResource, Stack, TemplateError, load

NO_LOCAL_MEANING: Mapping[str, str] = {
    "AWS::CloudWatch::Alarm": "nobody is notified by a laptop",
    "AWS::CloudWatch::Dashboard": "there are no metrics to draw",
    "AWS::Lambda::LayerVersion": "functions import the core and the installed packages from the tree",
    "AWS::Lambda::Permission": "the callers are parts of the local cloud; who may call is tested on the template",
    "AWS::S3::BucketPolicy": "moto does not evaluate it; it is tested on the template",
    "AWS::SQS::QueuePolicy": "moto does not evaluate it; it is tested on the template",
}
"""Skipped resource types -> reason. Any other type without a maker is an error."""


@dataclass(slots=True)
class Deployment:
    """The parts of the template that the local cloud runs. ``names`` maps function ARNs to names."""

    functions: dict[str, Definition] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)
    routes: list[Route] = field(default_factory=list)
    mappings: list[StreamMapping] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    invoke_configs: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    throttle: tuple[float, int] | None = None
    """The gateway's limits: requests a second, and requests at once."""
    route_throttles: dict[str, tuple[float, int]] = field(default_factory=dict)
    """The same of routes that have their own, by key."""


class ResourceFactory:
    """Creates one resource at a time. ``client(service)`` returns boto3 clients of Stockyard's own account."""

    def __init__(self, client: Callable[[str], Any], assembly: Path, api_url: str, account: str, region: str) -> None:
        self._client = client
        self._assembly = assembly
        self._api_url = api_url
        self._account = account
        self._region = region
        self._authorizers: dict[str, JwtAuthorizer] = {}
        self._integrations: dict[str, str] = {}
        self.deployment = Deployment()

    def __call__(self, kind: str, logical: str, properties: Mapping[str, Any]) -> CreatedResource:
        """See :class:`ResourceFactory`."""
        if kind in NO_LOCAL_MEANING:
            return CreatedResource(logical, {"Arn": f"arn:aws:local:::{logical}"})
        make = getattr(self, "_" + kind.removeprefix("AWS::").replace("::", "_").lower(), None)
        if make is None:
            raise TemplateError(f"the local cloud does not know {kind} ({logical})")
        resource: CreatedResource = make(logical, properties)
        return resource

    def _arn(self, service: str, name: str) -> str:
        return f"arn:aws:{service}:{self._region}:{self._account}:{name}"

    # --- state -------------------------------------------------------------------------------------------------------

    def _dynamodb_table(self, _logical: str, properties: Mapping[str, Any]) -> CreatedResource:
        parameters = dict(properties)
        stream = parameters.pop("StreamSpecification", None)
        if stream:
            parameters["StreamSpecification"] = {"StreamEnabled": True, **stream}
        recovery = parameters.pop("PointInTimeRecoverySpecification", None)
        expiry = parameters.pop("TimeToLiveSpecification", None)
        client = self._client("dynamodb")
        table = client.create_table(**parameters)["TableDescription"]
        name = table["TableName"]
        if recovery:
            client.update_continuous_backups(TableName=name, PointInTimeRecoverySpecification=recovery)
        if expiry:
            client.update_time_to_live(TableName=name, TimeToLiveSpecification=expiry)
        return CreatedResource(name, {"Arn": table["TableArn"], "StreamArn": table.get("LatestStreamArn", "")})

    def _secretsmanager_secret(self, _logical: str, properties: Mapping[str, Any]) -> CreatedResource:
        client = self._client("secretsmanager")
        text = properties.get("SecretString")
        if "GenerateSecretString" in properties:
            text = client.get_random_password(**properties["GenerateSecretString"])["RandomPassword"]
        secret = client.create_secret(
            Name=properties["Name"],
            SecretString=text or "",
            Description=properties.get("Description", ""),
            Tags=properties.get("Tags", []),
        )
        return CreatedResource(secret["ARN"], {"Id": secret["ARN"]})

    def _s3_bucket(self, _logical: str, properties: Mapping[str, Any]) -> CreatedResource:
        name = properties["BucketName"]
        client = self._client("s3")
        placed = {} if self._region == "us-east-1" else {"LocationConstraint": self._region}
        client.create_bucket(Bucket=name, **({"CreateBucketConfiguration": placed} if placed else {}))
        client.put_bucket_versioning(Bucket=name, VersioningConfiguration=properties["VersioningConfiguration"])
        return CreatedResource(name, {"Arn": f"arn:aws:s3:::{name}"})

    def _kms_key(self, _logical: str, properties: Mapping[str, Any]) -> CreatedResource:
        key = self._client("kms").create_key(Description=properties["Description"])["KeyMetadata"]
        return CreatedResource(key["KeyId"], {"Arn": key["Arn"]})

    def _kms_alias(self, _logical: str, properties: Mapping[str, Any]) -> CreatedResource:
        name, key = properties["AliasName"], str(properties["TargetKeyId"]).rpartition("/")[2]
        self._client("kms").create_alias(AliasName=name, TargetKeyId=key)
        return CreatedResource(name)

    def _logs_loggroup(self, _logical: str, properties: Mapping[str, Any]) -> CreatedResource:
        name = properties["LogGroupName"]
        client = self._client("logs")
        client.create_log_group(logGroupName=name)
        if "RetentionInDays" in properties:
            client.put_retention_policy(logGroupName=name, retentionInDays=properties["RetentionInDays"])
        return CreatedResource(name, {"Arn": self._arn("logs", f"log-group:{name}:*")})

    def _sqs_queue(self, _logical: str, properties: Mapping[str, Any]) -> CreatedResource:
        attributes = {
            name: json.dumps(value) if isinstance(value, dict) else str(value)
            for name, value in properties.items()
            if name in {"MessageRetentionPeriod", "VisibilityTimeout", "RedrivePolicy"}
        }
        name = properties["QueueName"]
        url = self._client("sqs").create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
        return CreatedResource(url, {"Arn": self._arn("sqs", name), "QueueName": name})

    def _iam_role(self, logical: str, properties: Mapping[str, Any]) -> CreatedResource:
        name = properties.get("RoleName") or f"Stockyard-{logical}"[:64]
        client = self._client("iam")
        role = client.create_role(
            RoleName=name,
            Path=properties.get("Path", "/"),
            Description=properties.get("Description", ""),
            AssumeRolePolicyDocument=json.dumps(properties["AssumeRolePolicyDocument"]),
        )["Role"]
        for policy in properties.get("Policies", ()):
            document = json.dumps(policy["PolicyDocument"])
            client.put_role_policy(RoleName=name, PolicyName=policy["PolicyName"], PolicyDocument=document)
        return CreatedResource(name, {"Arn": role["Arn"], "RoleId": role["RoleId"]})

    # --- functions and workflows -------------------------------------------------------------------------------------

    def _lambda_function(self, _logical: str, properties: Mapping[str, Any]) -> CreatedResource:
        name = properties["FunctionName"]
        arn = self._arn("lambda", f"function:{name}")
        variables = properties.get("Environment", {}).get("Variables", {})
        self.deployment.functions[name] = Definition(
            name,
            properties["Handler"],
            arn,
            dict(variables),
            float(properties.get("Timeout", 3)),
            int(properties.get("MemorySize", 128)),
        )
        self.deployment.roles[name] = properties["Role"]
        return CreatedResource(name, {"Arn": arn})

    def _lambda_eventinvokeconfig(self, logical: str, properties: Mapping[str, Any]) -> CreatedResource:
        self.deployment.invoke_configs[properties["FunctionName"]] = properties
        return CreatedResource(logical)

    def _lambda_eventsourcemapping(self, logical: str, properties: Mapping[str, Any]) -> CreatedResource:
        self.deployment.mappings.append(StreamMapping.from_properties(properties))
        return CreatedResource(logical)

    def _stepfunctions_statemachine(self, _logical: str, properties: Mapping[str, Any]) -> CreatedResource:
        if "DefinitionS3Location" in properties:
            text = (self._assembly / f"asset.{properties['DefinitionS3Location']['Key']}").read_text(encoding="utf-8")
        else:
            text = properties["DefinitionString"]
        for key, value in properties.get("DefinitionSubstitutions", {}).items():
            text = text.replace(f"${{{key}}}", str(value))
        machine = self._client("stepfunctions").create_state_machine(
            name=properties["StateMachineName"], definition=text, roleArn=properties["RoleArn"]
        )
        return CreatedResource(
            machine["stateMachineArn"], {"Arn": machine["stateMachineArn"], "Name": properties["StateMachineName"]}
        )

    # --- events ------------------------------------------------------------------------------------------------------

    def _events_eventbus(self, _logical: str, properties: Mapping[str, Any]) -> CreatedResource:
        bus = self._client("events").create_event_bus(Name=properties["Name"])
        return CreatedResource(properties["Name"], {"Arn": bus["EventBusArn"], "Name": properties["Name"]})

    def _events_rule(self, _logical: str, properties: Mapping[str, Any]) -> CreatedResource:
        parameters = {
            k: properties[k]
            for k in ("Name", "ScheduleExpression", "EventBusName", "State", "Description")
            if k in properties
        }
        if "EventPattern" in properties:
            parameters["EventPattern"] = json.dumps(properties["EventPattern"])
        arn = self._client("events").put_rule(**parameters)["RuleArn"]
        self.deployment.rules.append(Rule.from_properties(arn, properties))
        return CreatedResource(properties["Name"], {"Arn": arn})

    def _events_eventbuspolicy(self, logical: str, _properties: Mapping[str, Any]) -> CreatedResource:
        return CreatedResource(logical)

    # --- the API -----------------------------------------------------------------------------------------------------

    def _apigatewayv2_api(self, logical: str, _properties: Mapping[str, Any]) -> CreatedResource:
        return CreatedResource(logical.lower(), {"ApiEndpoint": self._api_url, "ApiId": logical.lower()})

    def _apigatewayv2_stage(self, logical: str, properties: Mapping[str, Any]) -> CreatedResource:
        if properties["StageName"] != "$default":
            raise TemplateError(f"{logical}: only the stage $default is known here")
        self.deployment.throttle = _throttle(properties["DefaultRouteSettings"])
        own_settings = properties.get("RouteSettings", {})
        self.deployment.route_throttles = {key: _throttle(settings) for key, settings in own_settings.items()}
        return CreatedResource(properties["StageName"])

    def _apigatewayv2_authorizer(self, logical: str, properties: Mapping[str, Any]) -> CreatedResource:
        jwt = properties["JwtConfiguration"]
        self._authorizers[logical] = JwtAuthorizer(jwt["Issuer"], tuple(jwt["Audience"]))
        return CreatedResource(logical)

    def _apigatewayv2_integration(self, logical: str, properties: Mapping[str, Any]) -> CreatedResource:
        if properties["IntegrationType"] != "AWS_PROXY" or properties["PayloadFormatVersion"] != "2.0":
            raise TemplateError(f"{logical}: only AWS_PROXY with payload format 2.0 is known here")
        self._integrations[logical] = properties["IntegrationUri"].rsplit(":", 1)[-1]
        return CreatedResource(logical)

    def _apigatewayv2_route(self, logical: str, properties: Mapping[str, Any]) -> CreatedResource:
        function = self._integrations[properties["Target"].removeprefix("integrations/")]
        secured = properties.get("AuthorizationType", "NONE") == "JWT"
        authorizer = self._authorizers[properties["AuthorizerId"]] if secured else None
        self.deployment.routes.append(Route(properties["RouteKey"], function, authorizer))
        return CreatedResource(logical)


def _throttle(settings: Mapping[str, Any]) -> tuple[float, int]:
    return float(settings["ThrottlingRateLimit"]), int(settings["ThrottlingBurstLimit"])


def pseudo_parameters(account: str, region: str) -> dict[str, str]:
    """Values of CloudFormation's own parameters."""
    return {
        "AWS::AccountId": account,
        "AWS::Region": region,
        "AWS::Partition": "aws",
        "AWS::URLSuffix": "amazonaws.com",
        "AWS::StackName": "Stockyard-dev",
        "AWS::NoValue": "",
    }


def deploy(
    factory: ResourceFactory, assembly: Path, pseudo: Mapping[str, str], replacements: Mapping[str, str]
) -> Deployment:
    """Creates all resources of the assembly's templates. Returns what the other parts of the local cloud need."""
    exports: dict[str, str] = {}
    for template in load(assembly, replacements):
        exports |= Stack(template, pseudo, exports, factory).create()
    return factory.deployment
