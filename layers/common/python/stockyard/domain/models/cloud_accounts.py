"""Cloud accounts as callers send and see them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, RootModel, SecretStr, ValidationInfo, model_validator

from stockyard.domain import cloud_kinds
from stockyard.domain.models import fields
from stockyard.domain.models.base import AnyOf, Input, Irremovable, View, check_fixed, read, read_part, refuse
from stockyard.domain.models.view_fields import CreatedAt, UpdatedAt, Version
from stockyard.domain.records import CloudAccount
from stockyard.domain.values.states import Verification


def _provider(name: str) -> str:
    if name not in cloud_kinds.clouds():
        raise ValueError(f"must be {' or '.join(cloud_kinds.clouds())}")
    return name


def _providers(schema: dict[str, Any]) -> None:
    schema["enum"] = list(cloud_kinds.clouds())


def _attributes(document: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
    """The attributes with their defaults, by the model of the account's provider."""
    attributes = read_part(cloud_kinds.attributes_models(info.data.get("provider")), document)
    return document if attributes is None else attributes.model_dump()


KEEP = SecretStr("as-it-is")
"""Stands for a secret that an account has and a patch does not name."""


def _secrets(provider: str, attributes: Mapping[str, Any]) -> dict[str, str | None]:
    """The values of those attributes that are secrets; None for one that is not there."""
    return {
        name: value.get_secret_value() if isinstance(value := attributes.get(name), SecretStr) else None
        for name in cloud_kinds.clouds()[provider].secrets
    }


def _public(provider: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that are no secrets, without those that are absent."""
    hidden = cloud_kinds.clouds()[provider].secrets
    return {name: value for name, value in attributes.items() if name not in hidden and value is not None}


def _attributes_patch(document: dict[str, Any]) -> dict[str, Any]:
    read_part(cloud_kinds.attributes_patch_models(), document)
    return document


class CloudAccountCreate(Input):
    """A cloud account to register."""

    provider: Annotated[str, AfterValidator(_provider), Field(json_schema_extra=_providers)]
    """The cloud that the account is in."""
    name: fields.Name
    """The name of the account, unique in the tenant."""
    description: fields.Description = ""
    attributes: Annotated[dict[str, Any], AfterValidator(_attributes), AnyOf(cloud_kinds.attributes_models)]
    """How Stockyard gets into the account; which fields there are depends on ``provider``."""
    tags: fields.Tags = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _known_provider(cls, document: Any) -> Any:
        # first, so that the attributes of a provider that is not built yet are not complained about one by one
        provider = document.get("provider") if isinstance(document, dict) else None
        if isinstance(provider, str) and provider in cloud_kinds.planned_clouds():
            *first, last = cloud_kinds.clouds()
            text = f"{provider} is not built yet; only {', '.join(first)} and {last} are"
            raise refuse((("provider",), text))
        return document

    def public_attributes(self) -> dict[str, Any]:
        """The attributes that the account's record keeps."""
        return _public(self.provider, self.attributes)

    def secret_attributes(self) -> dict[str, str]:
        """The attributes that are kept sealed."""
        return {name: value for name, value in _secrets(self.provider, self.attributes).items() if value is not None}


class CloudAccountPatch(Input):
    """A JSON merge patch of a cloud account."""

    name: Irremovable[fields.Name] = None
    """The new name."""
    description: Irremovable[fields.Description] = None
    attributes: Irremovable[
        Annotated[dict[str, Any], AfterValidator(_attributes_patch), AnyOf(cloud_kinds.attributes_patch_models)]
    ] = None
    """The attributes that change; those that are absent stay."""
    tags: dict[str, fields.TagValue | None] | None = None
    """Tags to add or change; null takes one away, or all of them."""

    @model_validator(mode="before")
    @classmethod
    def _fixed(cls, document: Any) -> Any:
        return check_fixed(document, {"provider"})

    def changes(self, account: CloudAccount) -> dict[str, Any]:
        """The record's fields that this patch gives, whole, ready for ``dataclasses.replace``."""
        patched_fields = self.model_fields_set
        changed: dict[str, Any] = {
            name: getattr(self, name) for name in ("name", "description") if name in patched_fields
        }
        if self.attributes is not None:
            (patch,) = cloud_kinds.attributes_patch_models(account.provider)
            (model,) = cloud_kinds.attributes_models(account.provider)
            attributes = read(patch, self.attributes, at=("attributes",)).model_dump(exclude_unset=True)
            merged = {**account.attributes, **dict.fromkeys(account.secrets, KEEP), **attributes}
            whole = read(model, merged, at=("attributes",)).model_dump()
            changed["attributes"] = _public(account.provider, whole)
            if cloud_kinds.clouds()[account.provider].secrets:
                secrets = _secrets(account.provider, whole)
                names = tuple(name for name, value in secrets.items() if value is not None)
                changed |= {"secrets": names} if names or account.secrets else {}
        if "tags" in patched_fields:
            changed["tags"] = fields.settled_tags(account.tags, self.tags)
        return changed

    def changed_secrets(self, account: CloudAccount) -> dict[str, str | None]:
        """The secrets that this patch names; None for one that it takes away. Its form was checked by ``changes``."""
        if self.attributes is None:
            return {}
        (patch,) = cloud_kinds.attributes_patch_models(account.provider)
        attributes = read(patch, self.attributes, at=("attributes",)).model_dump(exclude_unset=True)
        return {n: value for n, value in _secrets(account.provider, attributes).items() if n in attributes}


class CloudAccountView(View):
    """A cloud account, without its secrets."""

    id: int
    """The number of the account within the tenant."""
    provider: str
    """The cloud that the account is in."""
    name: str
    """The name of the account, unique in the tenant."""
    description: str
    """Free text for people."""
    attributes: dict[str, Any]
    """How Stockyard gets into the account, without the secrets."""
    secrets: list[str]
    """The names of the attributes that are kept sealed and are never shown."""
    external_id: str
    """Belongs into the trust policy of the account's role; it is no secret."""
    verification: Verification
    """What the last verification found."""
    verification_message: str
    """Why the last verification failed; empty when it did not."""
    verified_at: str | None
    """When the account was verified last; null when it never was."""
    warnings: list[str]
    """What the last verification warns of, an old template for example."""
    tags: dict[str, str]
    """Tags by key."""
    created_at: CreatedAt
    updated_at: UpdatedAt
    version: Version


class CloudFormationTemplate(BaseModel):
    """A CloudFormation template, to be deployed as it is in the account that is registered."""

    model_config = ConfigDict(extra="allow")

    AWSTemplateFormatVersion: str
    """The version of the template's format."""
    Resources: dict[str, Any]
    """What the template makes, by name."""


class KubernetesTemplate(BaseModel):
    """A list of Kubernetes objects, to be applied as it is in the cluster that is registered."""

    model_config = ConfigDict(extra="allow")

    api_version: Annotated[str, Field(alias="apiVersion")]
    """The version of the list's form."""
    kind: str
    """The kind of the document: a list of objects."""
    items: list[dict[str, Any]]
    """What is to be applied, in this order."""


class AccountTemplate(RootModel[CloudFormationTemplate | KubernetesTemplate]):
    """Template that the owner of an account deploys there, in the form of its cloud."""
