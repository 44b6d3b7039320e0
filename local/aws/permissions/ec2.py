"""EC2's calls as the permission checks that AWS does, by its Service Authorization Reference."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from local.aws.permissions import linked
from local.aws.permissions.account import Account
from local.aws.permissions.calls import Call, pass_role, request_tags, resource_tags, tag_keys, tags_of, texts
from local.aws.permissions.ec2_types import CREATED_TYPES, KEYED, OF_A_FLEET, PREFIXES, USED
from local.aws.permissions.policies import Ask, Wording

OF_A_VOLUME_KEY = ("Decrypt", "DescribeKey", "GenerateDataKeyWithoutPlaintext", "ReEncryptFrom", "ReEncryptTo")
UNAUTHORIZED = "UnauthorizedOperation"
_ID = re.compile("[a-z]+-[0-9a-f-]{8,36}")


def asks(call: Call, account: Account) -> Iterator[Ask]:
    """The checks of a call that changes something, or that looks at one thing. Raises ``KeyError`` for an operation
    that has no row."""
    operation, parameters = call.operation, call.parameters
    used, created = USED[operation], CREATED_TYPES.get(operation, ())
    is_retagging = operation in ("CreateTags", "DeleteTags")
    extra = tag_keys(parameters) if is_retagging else {}
    if operation == "CreateTags":
        extra |= request_tags(tags_of(parameters.get("Tags")))
    # These are called by their names.
    own = {"Placement": parameters} if operation.endswith("PlacementGroup") else parameters
    for kind, thing in _things(account, own):
        if kind in used:
            arn = call.ec2(kind, thing, account.owner_of(thing))
            yield Ask(call.action, arn, {**resource_tags(account.tags(thing)), **extra})
    by_kind = _specified(parameters)
    for kind in created:
        context = {**request_tags(by_kind.get(kind, {})), **_encryption(kind, parameters)}
        yield Ask(call.action, call.ec2(kind, "*"), context)
    yield from _tagging(call, by_kind, operation)
    profile = parameters.get("IamInstanceProfile")
    if profile:
        yield pass_role(account.role_of_profile(profile))
    if operation in KEYED:
        yield from _volume_keys(call, account, parameters)


def everything(call: Call, _account: Account) -> Iterator[Ask]:
    """The check of a call that knows no resource."""
    yield Ask(call.action, "*")


def fleet(call: Call, account: Account) -> Iterator[Ask]:
    """Checks for CreateFleet and, as the same caller, RunInstances: used and created things, and their tags. What of
    RunInstances is refused is an error in the answer."""
    parameters = call.parameters
    for config in parameters.get("LaunchTemplateConfigs", ()):
        template, data = account.launch_template(config["LaunchTemplateSpecification"])
        by_kind = {**_launched(data), **_specified(parameters)}
        for operation in ("CreateFleet", "RunInstances"):
            wording = None if operation == "CreateFleet" else _in_answer(f"ec2:{operation}")
            yield from _of_fleet(call, account, operation, {"given": config, "data": data}, wording)
            arn = call.ec2("launch-template", template)
            yield Ask(f"ec2:{operation}", arn, resource_tags(account.tags(template)), wording)
            absent = "fleet" if operation == "RunInstances" else ""
            tags_by_kind = {kind: tags for kind, tags in by_kind.items() if kind != absent}
            for kind, tags in _untagged(account, tags_by_kind).items():
                context = {**request_tags(tags), **_encryption(kind, data)}
                yield Ask(f"ec2:{operation}", call.ec2(kind, "*"), context, wording)
            yield from _tagging(call, tags_by_kind, operation, wording)
        profile = data.get("IamInstanceProfile")
        if profile:
            yield pass_role(account.role_of_profile(profile), wording=_in_answer("iam:PassRole"))
        yield from _volume_keys(call, account, data)
    capacity = parameters.get("TargetCapacitySpecification") or {}
    if capacity.get("DefaultTargetCapacityType") == "spot":
        yield from linked.first_use(account, linked.SPOT)


def launched(
    call: Call, account: Account, template: str, data: Mapping[str, Any], subnets: Any, wording: Wording
) -> Iterator[Ask]:
    """The checks of RunInstances by a launch template, into these subnets, that a service does in its caller's name."""
    action = "ec2:RunInstances"
    yield Ask(action, call.ec2("launch-template", template), resource_tags(account.tags(template)), wording)
    for kind, thing in _things(account, {"data": data, "subnets": list(subnets)}):
        if kind in USED["RunInstances"]:
            arn = call.ec2(kind, thing, account.owner_of(thing))
            yield Ask(action, arn, resource_tags(account.tags(thing)), wording)
    by_kind = _launched(data)
    for kind, tags in _untagged(account, by_kind).items():
        yield Ask(action, call.ec2(kind, "*"), {**request_tags(tags), **_encryption(kind, data)}, wording)
    yield from _tagging(call, by_kind, "RunInstances", wording)


def _of_fleet(
    call: Call, account: Account, operation: str, parameters: Mapping[str, Any], wording: Wording | None
) -> Iterator[Ask]:
    for kind, thing in _things(account, parameters):
        if kind in OF_A_FLEET[operation]:
            arn = call.ec2(kind, thing, account.owner_of(thing))
            yield Ask(f"ec2:{operation}", arn, resource_tags(account.tags(thing)), wording)


def _in_answer(action: str) -> Wording:
    text = f"You are not authorized to perform this operation: {action}"
    return Wording(UNAUTHORIZED, text, is_in_answer=True)


def _tagging(call: Call, by_kind: Mapping[str, Any], operation: str, wording: Wording | None = None) -> Iterator[Ask]:
    """Permission checks for the tags of what a call makes."""
    for kind, tags in by_kind.items():
        context = {**request_tags(tags), "ec2:CreateAction": operation, "aws:TagKeys": tuple(tags)}
        yield Ask("ec2:CreateTags", call.ec2(kind, "*"), context, wording)


def _volume_keys(call: Call, account: Account, parameters: Mapping[str, Any]) -> Iterator[Ask]:
    """Checks of EC2 in the caller's name for the keys of a launch's disks: those that it names, else the account's
    default one where that is not AWS's."""
    default = account.settings.volume_key
    for key in sorted(set(_keys(parameters))) or ([default] if default else []):
        arn = key if key.startswith("arn:") else call.arn(f"key/{key}", "kms")
        via = f"ec2.{call.region}.amazonaws.com"
        for action in OF_A_VOLUME_KEY:
            yield Ask(f"kms:{action}", arn, {"kms:ViaService": via})
        yield Ask("kms:CreateGrant", arn, {"kms:ViaService": via, "kms:GrantIsForAWSResource": "true"})


def _keys(value: Any) -> Iterator[str]:
    """The keys that disks in a document name."""
    if isinstance(value, Mapping):
        if value.get("KmsKeyId"):
            yield str(value["KmsKeyId"])
        for part in value.values():
            yield from _keys(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _keys(part)


def _untagged(account: Account, by_kind: Mapping[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """The same with instance and volume, which each launch makes, where guardrails look at what has no tag."""
    always: dict[str, dict[str, str]] = {"instance": {}, "volume": {}} if account.settings.guardrails else {}
    return {**always, **by_kind}


def _encryption(kind: str, data: Mapping[str, Any]) -> dict[str, str]:
    """Whether the volumes are encrypted that a call or a launch template names."""
    if kind != "volume":
        return {}
    disks = [mapping.get("Ebs") or {} for mapping in data.get("BlockDeviceMappings") or ()] or [data]
    return {"ec2:Encrypted": str(all(str(disk.get("Encrypted")).lower() == "true" for disk in disks)).lower()}


def _specified(parameters: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Resource type -> the tags that a request gives it."""
    return {
        str(specification["ResourceType"]): tags_of(specification.get("Tags"))
        for specification in parameters.get("TagSpecifications") or ()
    }


def _launched(data: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The same of a launch template's data; moto puts the template's own tags there too."""
    return {kind: tags for kind, tags in _specified(data).items() if kind != "launch-template"}


def _things(account: Account, parameters: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Type and id of each existing thing that a call names, each once."""
    things: dict[tuple[str, str], None] = {}
    for name in _named(parameters, "KeyName"):
        things["key-pair", name] = None
    for name in _named(parameters, "Placement", "GroupName"):
        things["placement-group", name] = None
    for text in texts(parameters):
        for thing in account.associated(text) if text.startswith("rtbassoc-") else (text,):
            kind = PREFIXES.get(thing.partition("-")[0]) if _ID.fullmatch(thing) else None
            if kind:
                things[kind, thing] = None
    yield from things


def _named(value: Any, field: str, inner: str = "") -> Iterator[str]:
    """The names in every field of that name, or in a field within it."""
    for name, part in value.items() if isinstance(value, Mapping) else ():
        if name != field:
            yield from _named(part, field, inner)
        elif not inner:
            yield str(part)
        elif part.get(inner):
            yield str(part[inner])
