"""Settings of a cluster are those of the driver that its account chooses."""

from __future__ import annotations

import pytest

from stockyard.domain import cloud_kinds
from stockyard.domain.cloud_kinds import ClusterKind
from stockyard.domain.models.base import read
from stockyard.domain.models.clusters.clusters import ClusterCreate, ClusterSettings, settings_for
from stockyard.errors import InvalidInput
from stockyard.providers import registry
from tests.unit.domain.models.clusters.test_clusters import MINIMAL, changed, faults


class ToySettings(ClusterSettings):
    """Settings that a second driver might want to know."""

    size: int


@pytest.fixture
def _two_drivers():
    toy = ClusterKind("toy", cloud="toyland", cluster_type="k8s", settings=f"{__name__}:ToySettings")
    drivers = {**registry.Kinds("clusters"), "toy": toy}
    cloud_kinds.use(registry.Kinds("clouds"), registry.PLANNED_CLOUDS, drivers)
    yield
    registry.introduce()


@pytest.mark.usefixtures("_two_drivers")
def test_between_two_drivers_the_account_chooses_whose_settings_they_are():
    cluster = read(ClusterCreate, {**MINIMAL, "settings": {"size": 3}})
    assert settings_for("toyland", "k8s", None, cluster.name, cluster.settings) == {"mirror": True, "size": 3}
    with pytest.raises(InvalidInput) as caught:
        settings_for("aws", "k8s", None, cluster.name, cluster.settings)
    assert {problem.pointer for problem in caught.value.errors} == {"/settings/size"}
    assert faults(changed("/settings", [])) == {"/settings": "must be an object"}


@pytest.mark.usefixtures("_two_drivers")
def test_fields_of_one_driver_alone_show_whose_settings_are_meant():
    assert faults(changed("/settings", {"vpc_id": "x", "mirror": 3})).keys() >= {"/settings/vpc_id", "/settings/mirror"}
    with pytest.raises(InvalidInput) as caught:
        read(ClusterCreate, {**MINIMAL, "name": "-", "settings": {"size": "large"}})
    assert {problem.pointer for problem in caught.value.errors} == {"/name", "/settings/size"}
    mixed = {"size": 3, "key_pair": "my-key"}
    assert read(ClusterCreate, {**MINIMAL, "settings": mixed}).settings == mixed


@pytest.mark.usefixtures("_two_drivers")
def test_the_document_shows_the_settings_of_every_driver():
    settings = ClusterCreate.model_json_schema()["properties"]["settings"]
    names = ("AwsSettingsCreate", "CudoSettings", "EksSettings", "ToySettings")
    assert settings["anyOf"] == [{"$ref": f"#/$defs/{name}"} for name in names]


@pytest.mark.parametrize(("name", "good"), [("hpc-1", True), ("Hpc", False)])
def test_the_name_is_checked_again_beside_the_settings_that_the_account_chooses(name, good):
    settings = {"key_pair": "k", "integrations": ["slurm"]}
    if good:
        assert settings_for("aws", "k8s", None, name, settings)["integrations"] == ["slurm"]
    else:
        with pytest.raises(InvalidInput) as caught:
            settings_for("aws", "k8s", None, name, settings)
        assert [problem.pointer for problem in caught.value.errors] == ["/name"]
