"""Life of resources of a stack: made, changed, replaced, rolled back, deleted, by the runner and the product's API."""

from __future__ import annotations

from typing import Any

import pytest

from local.cloudformation import StackFailed
from stockyard.domain.pools.records import Pool
from stockyard.domain.records import Cluster
from stockyard.operations.listing import every
from tests.constructs.documents import ACCOUNT, CLUSTER, LAB, PROFILE, cluster, yard
from tests.harness.stacks.rig import Rig, rig, template


def only(region: Rig, kind: type[Any] = Cluster) -> Any:
    (record,) = every(region.product.world.services.store, kind)
    return record


def test_a_cluster_is_made_and_deleted_with_its_stack() -> None:
    with rig() as region:
        before = region.product.things()
        stack = region.runner.create("platform", cluster())
        living = stack.resources["Cluster"]
        name = only(region).name
        assert living.data["Name"] == name
        assert name.startswith("platform-cluster-")
        assert (living.data["Endpoint"], living.data["Status"]) == ("nlb.example", "ready")
        assert living.data["CertificateAuthority"] == "Q0E="
        assert living.data["ClientId"] == only(region).client_id
        region.runner.delete(stack)
        region.settle()
        assert region.product.things() == before
        assert region.requests == [("Create", "Cluster"), ("Delete", "Cluster")]


def test_each_kind_is_made_changed_and_deleted() -> None:
    first = {
        **yard(),
    }
    extra = template(Base=("ClusterProfile", PROFILE), Second=("CloudAccount", ACCOUNT))["Resources"]
    first["Resources"] |= extra
    second = yard(3, description="Other", tags={"cost": "7"}, lab={"display_name": "A lab"})
    second["Resources"] |= template(
        Base=("ClusterProfile", {**PROFILE, "version": "1.1.0", "description": "Of some"}),
        Second=("CloudAccount", {**ACCOUNT, "description": "Two", "tags": {}}),
    )["Resources"]
    with rig() as region:
        before = region.product.things()
        stack = region.runner.create("platform", first)
        assert stack.resources["Second"].data["Number"] == "2"
        ids = {name: resource.physical_id for name, resource in stack.resources.items()}
        region.runner.update(stack, second)
        assert {name: resource.physical_id for name, resource in stack.resources.items()} == ids
        record = only(region)
        assert (record.description, record.tags.keys()) == ("Other", {"cost", "cloudformation-owner"})
        assert only(region, Pool).quantity == 3
        assert stack.resources["Base"].data["Version"] == "1.1.0"
        account = region.product.send("GET", "https://stockyard.test/v1/cloud-accounts/2", AUTHORIZED, None).body
        assert (account["description"], account["tags"].keys()) == ("Two", {"cloudformation-owner"})
        region.runner.update(stack, first)
        region.runner.delete(stack)
        region.settle()
        assert region.product.things() == before


AUTHORIZED = {"Authorization": "Bearer the-token"}


def test_a_field_that_never_changes_replaces_the_cluster_and_its_pool() -> None:
    with rig() as region:
        before = region.product.things()
        stack = region.runner.create("platform", yard())
        first = only(region)
        region.runner.update(stack, yard(settings={**CLUSTER["settings"], "region_name": "eu-west-1"}))
        second = only(region)
        assert first.id != second.id
        assert first.name != second.name
        assert only(region, Pool).cluster_id == second.id
        assert region.requests[3:] == [
            *(("Update", "Cluster"), ("Update", "Workers")),
            *(("Delete", "Workers"), ("Delete", "Cluster")),
        ]
        region.runner.delete(stack)
        region.settle()
        assert region.product.things() == before


def test_a_cluster_with_a_name_of_its_own_is_not_replaced_under_it() -> None:
    with rig() as region:
        stack = region.runner.create("platform", cluster(name="shop"))
        with pytest.raises(StackFailed, match="needs another name") as failure:
            region.runner.update(
                stack, cluster(name="shop", settings={**CLUSTER["settings"], "region_name": "eu-west-1"})
            )
        assert failure.value.status == "UPDATE_ROLLBACK_COMPLETE"
        assert only(region).settings["region_name"] == "us-east-1"
        assert only(region).status == "ready"
        region.runner.update(
            stack, cluster(name="shop-2", settings={**CLUSTER["settings"], "region_name": "eu-west-1"})
        )
        assert only(region).name == "shop-2"


def test_a_refusal_of_the_api_is_the_reason_of_the_stack() -> None:
    with rig() as region:
        before = region.product.things()
        with pytest.raises(StackFailed, match="/settings/region_name") as failure:
            region.runner.create("platform", yard(settings={"key_pair": "my-key", "region_name": "nowhere"}))
        assert failure.value.status == "ROLLBACK_COMPLETE"
        region.settle()
        assert region.product.things() == before
        stack = region.runner.create("platform", yard())
        with pytest.raises(StackFailed, match="/settings/etcd_volume_gib"):
            region.runner.update(stack, yard(settings={**CLUSTER["settings"], "etcd_volume_gib": 3}))
        assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
        assert only(region, Pool).quantity == 1


def test_what_the_rollback_in_the_middle_of_a_change_leaves_is_what_was_before() -> None:
    with rig() as region:
        stack = region.runner.create("platform", yard())
        record = only(region)
        changed = yard(nodes=-1, description="Other", lab={"display_name": "A lab"})
        with pytest.raises(StackFailed, match="/quantity"):
            region.runner.update(stack, changed)
        assert only(region).id == record.id
        assert only(region).description == "Made by a stack"
        assert only(region, Pool).quantity == 1
        assert region.requests[3:] == [
            *(("Update", "Lab"), ("Update", "Cluster"), ("Update", "Workers")),
            *(("Update", "Workers"), ("Update", "Cluster"), ("Update", "Lab")),
        ]


def test_what_is_there_is_taken_over_only_where_the_template_says_so_and_stays() -> None:
    with rig() as region:
        body = {**LAB, "name": "lab"}
        region.runner.create("first", template(Lab=("NodeProvider", body)))
        with pytest.raises(StackFailed, match="of another stack"):
            region.runner.create("second", template(Lab=("NodeProvider", body, {"Adopt": "true"})))
        things = region.product.things()
        region.product.send("POST", "https://stockyard.test/v1/clusters", HEADERS, as_body({**CLUSTER, "name": "old"}))
        region.product.work()
        with pytest.raises(StackFailed, match="Set adopt"):
            region.runner.create("third", cluster(name="old"))
        adopted = template(Cluster=("Cluster", {**CLUSTER, "name": "old", "description": "Ours"}, {"Adopt": "true"}))
        stack = region.runner.create("third", adopted)
        assert only(region).description == "Ours"
        region.runner.delete(stack)
        region.settle()
        assert only(region).status == "ready"
        assert {**region.product.things(), "Cluster": [], "cloud": []} == things


HEADERS = {**AUTHORIZED, "Content-Type": "application/json", "Idempotency-Key": "k"}


def as_body(document: Any) -> bytes:
    import json

    return json.dumps(document).encode()


def test_versions_of_a_profile_stay_as_they_are() -> None:
    def profile(**changes: Any) -> dict[str, Any]:
        return template(Base=("ClusterProfile", {**PROFILE, **changes}))

    other = [{"layer": "k8s", "name": "kubernetes", "tag": "1.35"}]
    with rig() as region:
        before = region.product.things()
        stack = region.runner.create("platform", profile())
        for changes, text in (({"description": "Else"}, "a further version"), ({"packs": other}, "another number")):
            with pytest.raises(StackFailed, match=text):
                region.runner.update(stack, profile(**changes))
            assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
        region.runner.update(stack, profile(version="2.0.0", packs=other, description="Else"))
        region.runner.update(stack, profile())
        assert stack.resources["Base"].data["Version"] == "1.0.0"
        region.runner.delete(stack)
        region.settle()
        assert region.product.things() == before


def test_a_resource_that_somebody_deletes_is_said_and_its_deletion_is_no_fault() -> None:
    with rig() as region:
        stack = region.runner.create("platform", cluster())
        region.product.send("DELETE", f"https://stockyard.test/v1/clusters/{only(region).id}", AUTHORIZED, None)
        region.product.work()
        with pytest.raises(StackFailed, match="is gone") as failure:
            region.runner.update(stack, cluster(description="Other"))
        assert failure.value.status == "UPDATE_ROLLBACK_FAILED"
        region.runner.delete(stack)
        assert stack.status == "DELETE_COMPLETE"
