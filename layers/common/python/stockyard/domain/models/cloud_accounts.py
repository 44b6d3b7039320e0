"""Cloud accounts as callers send and see them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

from stockyard.domain.models import fields, patterns
from stockyard.domain.models.base import Input, View, not_null, read, refuse
from stockyard.domain.records import CloudAccount

_PLANNED = frozenset({"cudo", "kubernetes", "bcm"})
_AwsRole = Annotated[
    str,
    StringConstraints(max_length=600, pattern=patterns.ROLE_ARN),
]


def _provider(name: str) -> str:
    if name != "aws":
        raise ValueError("must be aws")
    return name


class AwsAttributes(Input):
    """The role that Stockyard assumes, with an external id that it makes, and the account's default region."""

    role_arn: _AwsRole
    region: fields.Region = "us-east-1"


class CloudAccountCreate(Input):
    """A cloud account to register."""

    provider: Annotated[str, AfterValidator(_provider), Field(json_schema_extra={"enum": ["aws"]})]
    name: fields.Name
    description: fields.Description = ""
    attributes: AwsAttributes
    tags: fields.Tags = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _known_provider(cls, document: Any) -> Any:
        # first, so that the attributes of a provider that is not built yet are not complained about one by one
        provider = document.get("provider") if isinstance(document, dict) else None
        if isinstance(provider, str) and provider in _PLANNED:
            raise refuse((("provider",), f"{provider} is not built yet; only aws is"))
        return document


class AttributesPatch(Input):
    """Changed attributes; one that is absent stays."""

    role_arn: _AwsRole | None = Field(None, json_schema_extra=not_null)
    region: fields.Region | None = Field(None, json_schema_extra=not_null)

    @field_validator("role_arn", "region")
    @classmethod
    def _stays(cls, value: str | None) -> str | None:
        if value is None:
            raise ValueError("cannot be removed")
        return value


class CloudAccountPatch(Input):
    """A JSON merge patch of a cloud account."""

    name: fields.Name | None = Field(None, json_schema_extra=not_null)
    description: fields.Description | None = Field(None, json_schema_extra=not_null)
    attributes: AttributesPatch | None = Field(None, json_schema_extra=not_null)
    tags: dict[str, fields.TagValue | None] | None = None

    @model_validator(mode="before")
    @classmethod
    def _fixed(cls, document: Any) -> Any:
        if isinstance(document, dict) and "provider" in document:
            raise refuse((("provider",), "cannot be changed after creation"))
        return document

    @field_validator("name", "description", "attributes")
    @classmethod
    def _stays(cls, value: Any) -> Any:
        if value is None:
            raise ValueError("cannot be removed")
        return value

    def changes(self, account: CloudAccount) -> dict[str, Any]:
        """The record's fields that this patch gives, whole, ready for ``dataclasses.replace``."""
        given = self.model_fields_set
        changed: dict[str, Any] = {name: getattr(self, name) for name in ("name", "description") if name in given}
        if self.attributes is not None:
            merged = {**account.attributes, **self.attributes.model_dump(exclude_unset=True)}
            changed["attributes"] = read(AwsAttributes, merged, at=("attributes",)).model_dump()
        if "tags" in given:
            changed["tags"] = fields.settled_tags(account.tags, self.tags)
        return changed


class CloudAccountView(View):
    """A cloud account. ``external_id`` belongs into the trust policy of the role; it is no secret."""

    id: int
    provider: str
    name: str
    description: str
    attributes: dict[str, Any]
    external_id: str
    verification: Literal["unverified", "verified", "failed"]
    verification_message: str
    verified_at: str | None
    tags: dict[str, str]
    created_at: str
    updated_at: str
    version: int


class CloudFormationTemplate(BaseModel):
    """A CloudFormation template, to be deployed as it is in the account that is registered."""

    model_config = ConfigDict(extra="allow")

    AWSTemplateFormatVersion: str
    Resources: dict[str, Any]
