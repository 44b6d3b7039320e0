"""A JSON merge patch of a cluster: what may change after creation.

Which settings may change, the cluster's driver says; a patch does not name it. So its settings are read in two steps,
as those of a creation are: what no driver lets change is refused with the body, the rest beside the cluster's record.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any, ClassVar, cast, get_args, get_origin

from pydantic import AfterValidator, Field, StringConstraints, create_model, model_validator

from stockyard.domain import cloud_kinds
from stockyard.domain.clusters.change import ClusterChange, Expiry, SecretRequest
from stockyard.domain.models import fields
from stockyard.domain.models.base import (
    AnyOf,
    Input,
    Irremovable,
    check_fixed,
    read,
    read_part,
)
from stockyard.domain.models.clusters.clusters import ClusterSettings
from stockyard.domain.models.clusters.kubeconfig_secrets import KubeconfigSecretChoice
from stockyard.domain.models.clusters.limits import LimitsPatch, limits_after
from stockyard.domain.models.clusters.profiles import Choices, choice_documents
from stockyard.domain.models.patterns import worded
from stockyard.domain.nodes.provider_kinds import loaded
from stockyard.domain.records import Cluster
from stockyard.errors import FieldProblem, InvalidInput

_FIXED = frozenset({"name", "cloud_account_id", "cluster_type", "driver", "keep_failed", "secret"})
Minor = Annotated[str, StringConstraints(max_length=8, pattern=worded(r"^1\.[0-9]{1,3}$", "a minor, such as 1.35"))]


class SettingsPatch(Input):
    """The settings that may change of every cluster. Each other is refused by its name, so that nothing is dropped in
    silence."""

    DESCRIBED_BY: ClassVar[type[ClusterSettings] | None] = None
    """The model whose fields these are: what they mean is written there."""

    mirror: Irremovable[bool] = None
    """Whether pools and their claims are shown in the cluster, as read-only NodePools and NodeClaims."""

    @model_validator(mode="before")
    @classmethod
    def _fixed(cls, document: Any) -> Any:
        fixed = {name for model in cloud_kinds.settings_models() for name in model.model_fields}
        return check_fixed(document, fixed - cls.model_fields.keys())


@cache
def patch_model(model: type[ClusterSettings]) -> type[SettingsPatch]:
    """The patch of settings of that model: its changeable fields, and those of every cluster."""
    if not model.CHANGEABLE:
        return SettingsPatch
    changeable: dict[str, Any] = {name: (_patched(model, name), None) for name in sorted(model.CHANGEABLE)}
    name = f"{model.__name__}Patch"
    text = f"Changes of a ready cluster's {model.__name__}. A list is replaced as a whole, a map is merged."
    patch = create_model(name, __base__=SettingsPatch, __doc__=text, __module__=__name__, **changeable)
    patch.DESCRIBED_BY = model
    return patch


def _patched(model: type[ClusterSettings], name: str) -> Any:
    field, optional = model.model_fields[name], cast(Any, Irremovable)
    if name in model.REMOVABLE:
        return cast(Any, field.rebuild_annotation())
    if get_origin(field.annotation) is not dict:
        return optional[field.rebuild_annotation()]
    # An entry of a map may go by ``null``; what is left is read by the model itself.
    key, value = get_args(field.annotation)
    return optional[cast(Any, dict)[key, value | None]]


def _patch_models() -> Sequence[type[SettingsPatch]]:
    models: Sequence[type[ClusterSettings]] = cloud_kinds.settings_models()
    return list(dict.fromkeys(map(patch_model, models)))


def _settings(document: dict[str, Any]) -> dict[str, Any]:
    """The document, read by the one model that it can be of. Of several, ``settings_after`` knows which."""
    common = SettingsPatch.model_fields.keys()
    models = [model for model in _patch_models() if document.keys() & (model.model_fields.keys() - common)]
    read_part(models or [SettingsPatch], document)
    return document


class ClusterPatch(Input):
    """Changes of a cluster: absent means as it was; ``null`` removes ``expires_at``, a tag, or all of them.

    ``kubernetes_version``, ``profiles``, which are replaced as a whole, and most settings are changed by an operation,
    while the cluster goes on serving. With
    ``queue`` a change that would be refused because another operation is at work begins when that has ended.
    """

    description: Irremovable[fields.Description] = None
    tags: dict[str, fields.TagValue | None] | None = None
    """Tags to add or change; null takes one away, or all of them."""
    limits: LimitsPatch | None = None
    """Limits to add or change; null takes one away, or all of them."""
    kubernetes_version: Irremovable[Minor] = None
    """The minor to change to, one above the present one."""
    settings: Annotated[dict[str, Any], AfterValidator(_settings), AnyOf(_patch_models)] = Field(default_factory=dict)
    """The settings to change; those that are absent stay."""
    profiles: Irremovable[Choices] = None
    """All profiles that the cluster is to have, in place of those that it has."""
    expires_at: fields.ExpiresAt | None = None
    """When its deletion begins by itself; null for never."""
    kubeconfig_secret: KubeconfigSecretChoice | None = None
    """The Secret with its kubeconfig that an agent keeps fresh, replaced as a whole; null for none."""
    queue: bool = False
    """Wait for the operation that is at work, in place of a refusal."""

    @model_validator(mode="before")
    @classmethod
    def _fixed(cls, document: Any) -> Any:
        return check_fixed(document, _FIXED)

    def document(self) -> dict[str, Any]:
        """The patch as it was sent, to be read again later."""
        plain = {name: getattr(self, name) for name in self.model_fields_set - {"queue", "profiles"}}
        if self.kubeconfig_secret is not None:
            plain["kubeconfig_secret"] = self.kubeconfig_secret.model_dump()
        choices = self.profile_choices()
        return plain if choices is None else {**plain, "profiles": list(choices)}

    def profile_choices(self) -> tuple[dict[str, Any], ...] | None:
        """All profiles that the cluster is to have, as plain documents; None where they stay."""
        return None if self.profiles is None else choice_documents(self.profiles)

    def change_of(self, cluster: Cluster) -> ClusterChange:
        """Change of the cluster by the patch. Raises ``InvalidInput``."""
        return ClusterChange(
            description=self.description,
            tags=self.tags_after(cluster.tags),
            limits=limits_after(cluster.limits, self.limits) if "limits" in self.model_fields_set else None,
            settings=self.settings_after(cluster),
            kubernetes_version=self.kubernetes_version,
            profiles=self.profile_choices(),
            expiry=Expiry(self.expires_at) if "expires_at" in self.model_fields_set else None,
            secret=self._secret_request(),
        )

    def _secret_request(self) -> SecretRequest | None:
        if "kubeconfig_secret" not in self.model_fields_set:
            return None
        return SecretRequest(None if self.kubeconfig_secret is None else self.kubeconfig_secret.choice())

    def tags_after(self, current: dict[str, str]) -> dict[str, str] | None:
        """The tags that ``current`` become, None when they stay. Raises ``InvalidInput``."""
        return fields.settled_tags(current, self.tags) if "tags" in self.model_fields_set else None

    def settings_after(self, cluster: Cluster) -> dict[str, Any] | None:
        """The settings that the cluster's become, None when none is given. Raises ``InvalidInput`` for those that do
        not change in clusters of its driver, and for what they then would be."""
        if not self.settings:
            return None
        model: type[ClusterSettings] = loaded(
            cloud_kinds.cluster_kind(cluster.provider, cluster.cluster_type, cluster.driver).settings
        )
        read(patch_model(model), self.settings, at=("settings",))
        if not self.settings.keys() & model.CHANGEABLE:
            return {**cluster.settings, **self.settings}
        sent = model.patched(cluster.settings, self.settings)
        settings: ClusterSettings = read(model, sent, at=("settings",))
        problems = [
            FieldProblem(f"/settings{fault.pointer}", fault.detail)
            for fault in settings.change_faults(cluster.settings)
        ]
        if problems:
            raise InvalidInput.of(problems)
        document = settings.normal()
        names = {*self.settings, *(model.AGREEING if model.AGREEING & self.settings.keys() else ())}
        return {**cluster.settings, **{name: document[name] for name in names}}
