"""A JSON merge patch of a cluster: what may change after creation."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from stockyard.domain import cloud_kinds
from stockyard.domain.models import fields
from stockyard.domain.models.base import Input, Irremovable, check_fixed

_FIXED = frozenset({"name", "cloud_account_id", "cluster_type", "kubernetes_version", "keep_failed", "secret"})


class SettingsPatch(Input):
    """The settings that are no machine's may change. Each other is refused by its name, so that nothing is dropped in
    silence."""

    mirror: Irremovable[bool] = None

    @model_validator(mode="before")
    @classmethod
    def _fixed(cls, document: Any) -> Any:
        fixed = {name for model in cloud_kinds.settings_models() for name in model.model_fields}
        return check_fixed(document, fixed - cls.model_fields.keys())


class ClusterPatch(Input):
    """Changes of a cluster: absent means as it was; ``null`` removes a tag, or all of them."""

    description: Irremovable[fields.NotEmptyDescription] = None
    tags: dict[str, fields.TagValue | None] | None = None
    settings: SettingsPatch = Field(default_factory=SettingsPatch)

    @model_validator(mode="before")
    @classmethod
    def _fixed(cls, document: Any) -> Any:
        return check_fixed(document, _FIXED)

    def tags_after(self, current: dict[str, str]) -> dict[str, str] | None:
        """The tags that ``current`` become, None when they stay. Raises ``InvalidInput``."""
        return fields.settled_tags(current, self.tags) if "tags" in self.model_fields_set else None

    def settings_after(self, current: dict[str, Any]) -> dict[str, Any] | None:
        """The settings that ``current`` become, None when they stay."""
        return {**current, **self.settings.model_dump(exclude_unset=True)} if self.settings.model_fields_set else None
