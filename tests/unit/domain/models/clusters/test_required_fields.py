"""Fields that a request for a cluster has to have, and those that a leniently read document may leave out."""

from __future__ import annotations

import pytest

from stockyard.domain.models.base import read
from stockyard.domain.models.clusters.clusters import ClusterCreate, LenientClusterCreate, settings_for
from stockyard.errors import InvalidInput
from tests.unit.domain.models.clusters.test_clusters import MINIMAL, changed, faults, normal


@pytest.mark.parametrize(
    "path", ["/name", "/description", "/cloud_account_id", "/cluster_type", "/settings", "/settings/key_pair"]
)
def test_a_required_field_that_is_missing_is_named(path):
    assert faults(changed(path, ...)) == {path: "this field is required"}


def test_a_document_that_is_read_leniently_has_no_need_of_description_settings_and_key_pair():
    document = {name: MINIMAL[name] for name in ("name", "cloud_account_id", "cluster_type")}
    assert set(faults(document)) == {"/description", "/settings"}
    cluster = read(LenientClusterCreate, document)
    assert (cluster.description, cluster.settings, normal(cluster)["key_pair"]) == ("", {}, None)


def test_where_only_the_account_says_whose_settings_they_are_a_key_pair_is_demanded_all_the_same():
    undecided = read(ClusterCreate, {**MINIMAL, "settings": {"mirror": False}})
    with pytest.raises(InvalidInput, match=r"/settings/key_pair: this field is required"):
        normal(undecided)
    assert settings_for("cudo", "k8s", None, "demo", {"mirror": False}, creation=True)["mirror"] is False
