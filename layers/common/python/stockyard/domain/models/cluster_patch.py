"""A JSON merge patch of a cluster: what may change after creation."""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator, model_validator

from stockyard.domain.models import fields
from stockyard.domain.models.base import Input, not_null, refuse
from stockyard.domain.models.clusters import AwsSettings

_FIXED = frozenset({"name", "cloud_account_id", "cluster_type", "secret"})


class SettingsPatch(Input):
    """No setting may change yet: each is refused by its name, so that nothing is dropped in silence."""

    @model_validator(mode="before")
    @classmethod
    def _fixed(cls, document: Any) -> Any:
        return _without(document, frozenset(AwsSettings.model_fields))


class ClusterPatch(Input):
    """Changes of a cluster: absent means as it was; ``null`` removes a tag, or all of them."""

    description: fields.Description | None = Field(None, json_schema_extra=not_null)
    tags: dict[str, fields.TagValue | None] | None = None
    settings: SettingsPatch = Field(default_factory=SettingsPatch)

    @model_validator(mode="before")
    @classmethod
    def _fixed(cls, document: Any) -> Any:
        return _without(document, _FIXED)

    @field_validator("description")
    @classmethod
    def _stays(cls, value: str | None) -> str | None:
        if value is None:
            raise ValueError("cannot be removed")
        return value

    def tags_after(self, current: dict[str, str]) -> dict[str, str] | None:
        """The tags that ``current`` become, None when they stay. Raises ``InvalidInput``."""
        return fields.settled_tags(current, self.tags) if "tags" in self.model_fields_set else None


def _without(document: Any, fixed: frozenset[str]) -> Any:
    if isinstance(document, dict):
        faults = [((name,), "cannot be changed after creation") for name in document if name in fixed]
        if faults:
            raise refuse(*faults)
    return document
