"""Body of a request to create a cluster. Its settings are read by the model that account and driver choose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    ModelWrapValidatorHandler,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from stockyard import kubernetes_versions
from stockyard.domain import cloud_kinds
from stockyard.domain.models import fields, patterns
from stockyard.domain.models.base import AnyOf, Fault, Input, faults_of, merged, read, read_part, refuse
from stockyard.domain.models.clusters.kubeconfig_secrets import KubeconfigSecretChoice
from stockyard.domain.models.clusters.limits import ClusterLimits
from stockyard.domain.models.clusters.profiles import Choices
from stockyard.domain.nodes.provider_kinds import loaded
from stockyard.domain.records import Cluster
from stockyard.errors import FieldProblem, InvalidInput

M = TypeVar("M", bound=BaseModel)


def _tested(version: str, info: ValidationInfo) -> str:
    if not cloud_kinds.default_version(info.data.get("driver")) and version not in kubernetes_versions.TESTED:
        raise ValueError(f"must be {' or '.join(kubernetes_versions.TESTED)}")
    return version


KubernetesVersion = Annotated[
    str, StringConstraints(min_length=1, max_length=16, pattern=patterns.MINOR), AfterValidator(_tested)
]
"""A minor; without one the stage's setting is taken, or the driver's where the cloud runs the control planes. Which
minors such a cloud has the driver says."""


def beside(model: type[M], foreign: Mapping[str, str], document: Any, handler: ModelWrapValidatorHandler[M]) -> M:
    """For a wrapping validator: the document, unless it has fields that are ``foreign``, by their names with what is to
    be said of each. The faults of all other fields are told with them."""
    names = [name for name in document if name in foreign] if isinstance(document, dict) else []
    if not names:
        return handler(document)
    faults: list[Fault] = [((name,), foreign[name]) for name in names]
    try:
        handler({name: value for name, value in document.items() if name not in foreign})
    except ValidationError as error:
        faults += faults_of(error, model)
    raise refuse(*faults)


def _built(name: str) -> str:
    if name not in cloud_kinds.drivers():
        raise ValueError(f"must be {' or '.join(cloud_kinds.drivers())}")
    return name


Driver = Annotated[str, AfterValidator(_built)]
"""The name of a cluster driver."""


class ClusterSettings(Input):
    """Base of the models of settings, of which each cluster driver has one."""

    CHANGEABLE: ClassVar[frozenset[str]] = frozenset()
    """Fields that an operation may change on a ready cluster. ``mirror`` is the record's alone, and may change always.
    """

    CALLED_HERE: ClassVar[Mapping[str, str]] = {}
    """Names that the same thing has in settings of other clusters, and what it is called here."""

    REMOVABLE: ClassVar[frozenset[str]] = frozenset()
    """Of the changeable fields those that ``null`` takes away."""

    MADE_WITH: ClassVar[Mapping[str, frozenset[str]]] = {}
    """By setting, the phases of a creation that make something by it which they do not change afterwards: while such a
    thing stands, a creation that has failed keeps the setting. One that is not here is kept while anything stands,
    unless a ready cluster may change it."""

    REFUSED: ClassVar[Mapping[str, str]] = {}
    """Fields that settings of this driver never have, and why."""

    mirror: bool = True
    """Whether pools and their claims are shown in the cluster, as read-only NodePools and NodeClaims."""

    @model_validator(mode="wrap")
    @classmethod
    def _own_fields(cls, document: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Fields of clusters in other clouds are refused by the cloud's name."""
        unknown = set(document) - set(cls.model_fields) if isinstance(document, dict) else set[str]()
        if not unknown:
            return handler(document)
        owners = cloud_kinds.settings_owners(unknown)
        here = {name: f"; here it is {own_name}" for name, own_name in cls.CALLED_HERE.items()}
        foreign = {name: f"is a field of clusters {owner}{here.get(name, '')}" for name, owner in owners.items()}
        foreign |= {name: cls.REFUSED[name] for name in unknown if name in cls.REFUSED}
        return beside(cls, foreign, document, handler)

    AGREEING: ClassVar[frozenset[str]] = frozenset()
    """Fields that say the same in part: a patch of one of them changes the others too."""

    @classmethod
    def patched(cls, before: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
        """Apply a JSON merge patch to ``before``, settings as a record keeps them; they are read afterwards."""
        return dict(merged(before, patch))

    @classmethod
    def written(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        """A record's settings as a person writes them: without what follows from the others."""
        return dict(settings)

    def name_fault(self, _name: str) -> str | None:
        """Fault of a cluster's name beside these settings, or None."""
        return None

    def change_faults(self, before: Mapping[str, Any]) -> Sequence[FieldProblem]:  # noqa: ARG002 - all may change
        """The settings of ``before``, as the record of a ready cluster keeps them, that cannot become these: pointers
        below the settings."""
        return ()

    def normal(self) -> dict[str, Any]:
        """The settings as the record keeps them: every field there, defaults filled in."""
        return self.model_dump(mode="json")


def settings_for(
    cloud: str, cluster_type: str, driver: str | None, name: str, document: Mapping[str, Any], *, creation: bool = False
) -> dict[str, Any]:
    """The settings of a new cluster as its record keeps them, read by the model of its driver, or of the cloud's first
    driver when none is named. ``creation``: they have to give all that a request has to give.

    Raises ``InvalidInput`` with every fault of the settings, or of the name beside them.
    """
    model = cloud_kinds.cluster_kind(cloud, cluster_type, driver).settings_model(creation=creation)
    settings: ClusterSettings = read(model, document, at=("settings",))
    if fault := settings.name_fault(name):
        problems = [FieldProblem("/name", fault)]
        raise InvalidInput.of(problems)
    return settings.normal()


def changed_settings(cluster: Cluster, settings_sent: Mapping[str, Any]) -> dict[str, Any]:
    """The settings for a cluster's record when a request replaces all of them.

    ``InvalidInput`` for what cannot change after creation, and for what they then would be.
    """
    model: type[ClusterSettings] = loaded(
        cloud_kinds.cluster_kind(cluster.provider, cluster.cluster_type, cluster.driver).settings
    )
    try:
        settings = read(model, settings_sent, at=("settings",))
    except InvalidInput as refused:
        # What is wrong with the rest may be so because of a field that cannot change, such as a region.
        texts = {name: value for name, value in settings_sent.items() if isinstance(value, str)}
        problems = _fixed_faults(model, cluster, texts)
        if problems:
            raise InvalidInput.of(problems) from refused
        raise
    document = {**cluster.settings, **settings.normal()}
    problems = _fixed_faults(model, cluster, document)
    problems += [
        FieldProblem(f"/settings{fault.pointer}", fault.detail) for fault in settings.change_faults(cluster.settings)
    ]
    if problems:
        raise InvalidInput.of(problems)
    return document


def _fixed_faults(model: type[ClusterSettings], cluster: Cluster, document: Mapping[str, Any]) -> list[FieldProblem]:
    """The fields of the document that differ from the cluster's and cannot change."""
    fixed = (document.keys() & cluster.settings.keys()) - model.CHANGEABLE - ClusterSettings.model_fields.keys()
    return [
        FieldProblem(f"/settings/{name}", "cannot be changed after creation")
        for name in sorted(fixed)
        if document[name] != cluster.settings.get(name)
    ]


def _read(
    cluster_type: str | None, driver: str | None, document: dict[str, Any], *, creation: bool = False
) -> ClusterSettings | None:
    """None when drivers with different settings make clusters of the type, and the document may be of more than one:
    the account chooses between them."""
    if driver is not None:
        models = cloud_kinds.settings_models(cluster_type=cluster_type, driver=driver, creation=creation)
        return read_part(models, document)
    models = cloud_kinds.usual_settings_models(cluster_type, creation=creation)
    return read_part(_models_of(models, document), document)


def _models_of(models: Sequence[type[Any]], document: dict[str, Any]) -> Sequence[type[Any]]:
    """The one model that has fields of the document which no other has, so that all faults are told at once; else all
    models. The account has the last word: see ``settings_for``."""
    counts = Counter(name for model in models for name in model.model_fields)
    own = [model for model in models if any(counts[name] == 1 for name in model.model_fields.keys() & document.keys())]
    return own if len(own) == 1 else models


def _settings(document: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
    if "driver" in info.data:
        # Of a driver that is refused the settings are nobody's.
        _read(info.data.get("cluster_type"), info.data["driver"], document)
    return document


def _creation_settings(document: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
    if "driver" in info.data:
        _read(info.data.get("cluster_type"), info.data["driver"], document, creation=True)
    return document


def _creation_models() -> Sequence[type[Any]]:
    return cloud_kinds.settings_models(creation=True)


class LenientClusterCreate(Input):
    """A cluster to create, as documents of people may ask for it: a description, settings and what only a request's
    settings have to give may be absent."""

    name: fields.Name
    """The name of the cluster, unique in the tenant. It cannot be changed."""
    description: fields.Description = ""
    cloud_account_id: Annotated[int, Field(ge=1, le=2**53 - 1)]
    """The number of the cloud account that the cluster is made in."""
    cluster_type: Literal["k8s"]
    """What kind of cluster it is."""
    driver: Driver | None = None
    """Who makes it, where the account's cloud has more than one driver; the cloud's first when none is given."""
    kubernetes_version: KubernetesVersion | None = None
    keep_failed: fields.KeepFailed = 0
    expires_at: fields.ExpiresAt | None = None
    """When its deletion begins by itself; null for never."""
    kubeconfig_secret: KubeconfigSecretChoice | None = None
    """A Secret with its kubeconfig that an agent keeps fresh; null for none."""
    secret: fields.ClientSecret | None = None
    settings: Annotated[dict[str, Any], AfterValidator(_settings), AnyOf(cloud_kinds.settings_models)] = Field(
        default_factory=dict
    )
    """What the cluster is made of; which fields there are depends on the account's cloud and on ``driver``."""
    tags: fields.Tags = Field(default_factory=dict)
    limits: ClusterLimits = Field(default_factory=dict)
    profiles: Choices = Field(default_factory=list)
    """The profiles whose packs the cluster is to have."""

    @model_validator(mode="after")
    def _name_beside_settings(self) -> Self:
        settings = _read(self.cluster_type, self.driver, self.settings)
        if settings is not None and (fault := settings.name_fault(self.name)):
            raise refuse((("name",), fault))
        return self


class ClusterCreate(LenientClusterCreate):
    """A cluster to create."""

    description: fields.NotEmptyDescription
    settings: Annotated[dict[str, Any], AfterValidator(_creation_settings), AnyOf(_creation_models)]
    """What the cluster is made of; which fields there are depends on the account's cloud and on ``driver``."""
