"""Stacks whose custom resources live as in CloudFormation: created, changed, replaced, rolled back, deleted."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from local.cloudformation.answers import Answer, as_texts
from local.cloudformation.framework import Fault, Provider, _no_fault
from local.cloudformation.requests import Requests, seconds_of
from local.cloudformation.templates import Template, custom_resources, walked
from local.cloudformation.timeline import Timeline
from local.template import CreatedResource, TemplateError

ACCOUNT = "222222222222"
REGION = "us-east-1"
CLEANUPS = 3
"""How often CloudFormation tries to delete what a finished change has left."""


class StackFailed(Exception):
    """A stack operation has failed. ``status`` is what the stack is now; the text is the first reason."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(f"{status}: {reason}")
        self.status = status
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource of a stack: its physical id, None before the first answer, and its state since a moment."""

    kind: str
    properties: Mapping[str, Any]
    status: str
    since: datetime
    physical_id: str | None = None
    data: Mapping[str, str] = field(default_factory=dict)
    stays: bool = False
    """Whether its deletion policy retains it."""


LeftOver = tuple[str, str, Mapping[str, Any], str]
"""Logical id, physical id, properties and type of what is to be deleted when a change has ended."""


@dataclass(slots=True)
class Deployed:
    """A stack. ``reasons`` say why resources have failed, the oldest first."""

    id: str
    status: str = "CREATE_IN_PROGRESS"
    template: Template = field(default_factory=dict)
    resources: dict[str, Resource] = field(default_factory=dict)
    cleanup: list[LeftOver] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Name of the stack."""
        return self.id.rpartition(":stack/")[2].partition("/")[0]


class _ResourceFailed(Exception):
    """A resource of a stack operation has failed."""


@dataclass(slots=True)
class Runner:
    """Carries out stack operations, one resource after the other.

    ``notes_failed_ids``: whether a failed update keeps the physical id of its answer, which the documentation leaves
    open.
    """

    provider: Provider
    timeline: Timeline
    fault: Fault = _no_fault
    notes_failed_ids: bool = False
    stacks: dict[str, Deployed] = field(default_factory=dict)
    _requests: Requests = field(init=False)

    def __post_init__(self) -> None:
        self._requests = Requests(self.provider, self.timeline, self.fault)

    @property
    def requests(self) -> Requests:
        """Requests that were sent so far."""
        return self._requests

    # --- stack operations --------------------------------------------------------------------------------------------

    def create(self, name: str, template: Template) -> Deployed:
        """A new stack. Raises ``StackFailed`` when it was rolled back."""
        unique = hashlib.sha256(f"{name}/{len(self.stacks)}".encode()).hexdigest()[:32]
        stack = Deployed(f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/{name}/{unique}", template=template)
        self.stacks[stack.id] = stack
        try:
            self._walk(stack, template)
        except (_ResourceFailed, TemplateError) as error:
            is_empty = self._delete_all(stack)
            stack.status = "ROLLBACK_COMPLETE" if is_empty else "ROLLBACK_FAILED"
            raise StackFailed(stack.status, str(error)) from error
        stack.status = "CREATE_COMPLETE"
        return stack

    def update(self, stack: Deployed, template: Template) -> Deployed:
        """Changes a stack to another template. Raises ``StackFailed`` when it was rolled back."""
        before = dict(stack.resources)
        stack.status, stack.cleanup = "UPDATE_IN_PROGRESS", []
        try:
            self._walk(stack, template)
        except (_ResourceFailed, TemplateError) as error:
            stack.status = "UPDATE_ROLLBACK_IN_PROGRESS"
            self._roll_back(stack, before, str(error))
        else:
            removed = [name for name in custom_resources(stack.template) if name not in template["Resources"]]
            stack.template, stack.status = template, "UPDATE_COMPLETE"
            for name in removed:
                if (resource := stack.resources.pop(name)).stays:
                    continue
                stack.cleanup.append((name, str(resource.physical_id), resource.properties, resource.kind))
            self._clean_up(stack)
        return stack

    def delete(self, stack: Deployed) -> None:
        """Deletes a stack; again where an earlier deletion has failed. Raises ``StackFailed``."""
        stack.status = "DELETE_IN_PROGRESS"
        if not self._delete_all(stack):
            stack.status = "DELETE_FAILED"
            raise StackFailed(stack.status, stack.reasons[-1])
        stack.status = "DELETE_COMPLETE"

    # --- resources ---------------------------------------------------------------------------------------------------

    def _walk(self, stack: Deployed, template: Template) -> None:
        """Makes and changes resources in order."""
        bodies = template["Resources"]

        def make(logical: str, resolved: Mapping[str, Any]) -> CreatedResource:
            properties = as_texts(resolved)
            seconds_of(properties)
            current = stack.resources.get(logical)
            if current is None:
                current = self._create(stack, logical, bodies[logical]["Type"], properties)
            elif current.properties != properties:
                current = self._update(stack, logical, current, properties)
            stays = bodies[logical].get("DeletionPolicy") == "Retain"
            stack.resources[logical] = current = replace(current, stays=stays)
            return CreatedResource(str(current.physical_id), current.data)

        for _ in walked(template, self._pseudo(stack), make):
            pass

    def _pseudo(self, stack: Deployed) -> Mapping[str, str]:
        return {
            "AWS::StackId": stack.id,
            "AWS::StackName": stack.name,
            "AWS::AccountId": ACCOUNT,
            "AWS::Region": REGION,
            "AWS::Partition": "aws",
            "AWS::URLSuffix": "amazonaws.com",
        }

    def _create(self, stack: Deployed, logical: str, kind: str, properties: Mapping[str, Any]) -> Resource:
        started = Resource(kind, properties, "CREATE_IN_PROGRESS", self.timeline.now())
        stack.resources[logical] = started
        answer = self._requests.send("Create", properties, **self._fields(stack, logical, kind))
        return self._settled(stack, logical, started, answer, "CREATE")

    def _update(self, stack: Deployed, logical: str, current: Resource, properties: Mapping[str, Any]) -> Resource:
        if current.properties["ServiceToken"] != properties["ServiceToken"]:
            stack.reasons.append(f"{logical}: ServiceToken cannot be changed")
            raise _ResourceFailed(stack.reasons[-1])
        started = replace(current, properties=properties, status="UPDATE_IN_PROGRESS", since=self.timeline.now())
        stack.resources[logical] = started
        answer = self._requests.send(
            "Update",
            properties,
            **self._fields(stack, logical, current.kind),
            OldResourceProperties=current.properties,
            PhysicalResourceId=current.physical_id,
        )
        return self._settled(stack, logical, started, answer, "UPDATE", current)

    def _settled(
        self,
        stack: Deployed,
        logical: str,
        started: Resource,
        answer: Answer | None,
        act: str,
        before: Resource | None = None,
    ) -> Resource:
        now, physical_id = self.timeline.now(), started.physical_id
        if answer is None or not answer.succeeded:
            if answer is not None and (act == "CREATE" or self.notes_failed_ids):
                physical_id = answer.physical_id
                if before is not None and before.physical_id != physical_id:
                    stack.cleanup.append((logical, str(before.physical_id), before.properties, started.kind))
            physical_id = physical_id or _made_up(stack, logical)
            reason = "CloudFormation did not receive a response" if answer is None else answer.reason
            stack.resources[logical] = replace(started, status=f"{act}_FAILED", since=now, physical_id=physical_id)
            stack.reasons.append(f"{logical}: {reason}")
            raise _ResourceFailed(stack.reasons[-1])
        if before is not None and before.physical_id != answer.physical_id:
            stack.cleanup.append((logical, str(before.physical_id), before.properties, started.kind))
        status, data = f"{act}_COMPLETE", answer.data
        settled = replace(started, status=status, since=now, physical_id=answer.physical_id, data=data)
        stack.resources[logical] = settled
        return settled

    def _roll_back(self, stack: Deployed, before: Mapping[str, Resource], reason: str) -> None:
        """Gives each resource the properties that it had, and removes what is new. Raises ``StackFailed``."""
        pending, stack.cleanup = stack.cleanup, []
        try:
            for logical in [name for name in reversed(stack.resources) if name in before]:
                current, earlier = stack.resources[logical], before[logical]
                if current is not earlier:
                    self._update(stack, logical, current, earlier.properties)
        except _ResourceFailed as error:
            stack.status, stack.cleanup = "UPDATE_ROLLBACK_FAILED", [*pending, *stack.cleanup]
            raise StackFailed(stack.status, f"{reason}; {error}") from error
        stack.cleanup = [*pending, *stack.cleanup]
        for logical in [name for name in stack.resources if name not in before]:
            resource = stack.resources.pop(logical)
            stack.cleanup.append((logical, str(resource.physical_id), resource.properties, resource.kind))
        living = {resource.physical_id for resource in stack.resources.values()}
        stack.cleanup = [entry for entry in stack.cleanup if entry[1] not in living]
        stack.status = "UPDATE_ROLLBACK_COMPLETE"
        self._clean_up(stack)
        raise StackFailed(stack.status, reason)

    def _clean_up(self, stack: Deployed) -> None:
        """Deletes what a change has left over; what cannot be deleted stays, and only the events say so."""
        for logical, physical_id, properties, kind in reversed(stack.cleanup):
            for _ in range(CLEANUPS):
                if self._is_deleted(stack, logical, physical_id, properties, kind):
                    break
        stack.cleanup = []

    def _delete_all(self, stack: Deployed) -> bool:
        living = {resource.physical_id for resource in stack.resources.values()}
        stack.cleanup = [entry for entry in stack.cleanup if entry[1] not in living]
        self._clean_up(stack)
        for logical, resource in reversed(list(stack.resources.items())):
            started = replace(resource, status="DELETE_IN_PROGRESS", since=self.timeline.now())
            stack.resources[logical] = started
            if resource.stays:
                del stack.resources[logical]
                continue
            if not self._is_deleted(stack, logical, str(resource.physical_id), resource.properties, resource.kind):
                stack.resources[logical] = replace(started, status="DELETE_FAILED", since=self.timeline.now())
                return False
            del stack.resources[logical]
        return True

    def _is_deleted(
        self, stack: Deployed, logical: str, physical_id: str, properties: Mapping[str, Any], kind: str
    ) -> bool:
        fields = self._fields(stack, logical, kind)
        answer = self._requests.send("Delete", properties, **fields, PhysicalResourceId=physical_id)
        if answer is None or not answer.succeeded:
            stack.reasons.append(
                f"{logical}: {answer.reason if answer else 'CloudFormation did not receive a response'}"
            )
            return False
        return True

    def _fields(self, stack: Deployed, logical: str, kind: str) -> dict[str, str]:
        return {"StackId": stack.id, "LogicalResourceId": logical, "ResourceType": kind}

    # --- what functions ask of CloudFormation ------------------------------------------------------------------------

    def describe_stack_resource(self, StackName: str, LogicalResourceId: str) -> dict[str, Any]:  # noqa: N803
        """The call of that name of boto3's client. ``ClientError`` where there is no such resource."""
        from botocore.exceptions import ClientError

        resource = self.stacks[StackName].resources.get(LogicalResourceId)
        if resource is None:
            message = f"Resource {LogicalResourceId} does not exist for stack {StackName}"
            raise ClientError({"Error": {"Code": "ValidationError", "Message": message}}, "DescribeStackResource")
        detail = {"ResourceStatus": resource.status, "LastUpdatedTimestamp": resource.since}
        if resource.physical_id is not None:
            detail["PhysicalResourceId"] = resource.physical_id
        return {"StackResourceDetail": detail}


def _made_up(stack: Deployed, logical: str) -> str:
    """The physical id that CloudFormation gives a resource of which it has never heard."""
    return f"{stack.name}-{logical}-{hashlib.sha256(f'{stack.id}/{logical}'.encode()).hexdigest()[:12].upper()}"
