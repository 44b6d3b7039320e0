"""Descriptions of fields are read from the sources of their models."""

from __future__ import annotations

from pydantic import create_model

from stockyard.domain.models.base import View
from stockyard.domain.models.clusters.clusters import ClusterCreate
from stockyard.domain.models.nodes.node_claims import PlacementView
from stockyard.domain.models.nodes.node_fields import CamelRequirement
from stockyard.edge.openapi.descriptions import DescribedSchema, description, first_sentence, plain
from tests.unit.edge import described_models


def test_the_text_below_a_field_is_its_description() -> None:
    assert description(described_models.Thing, "own") == "What `own` is, in two lines."
    assert description(ClusterCreate, "cloud_account_id").startswith("The number of the cloud account")


def test_a_field_without_a_text_has_that_of_its_alias() -> None:
    assert description(described_models.Thing, "here") == "An alias of this module."
    assert description(described_models.Thing, "perhaps") == "An alias of this module."
    assert description(described_models.Thing, "imported") == description(described_models.Thing, "qualified") != ""


def test_inherited_fields_have_the_text_of_the_class_that_declares_them() -> None:
    assert description(described_models.Child, "own") == "What `own` is, in two lines."
    assert description(described_models.Child, "here") == "Said anew."
    assert description(PlacementView, "zones") == "The zones where it is on offer."


def test_a_field_that_nobody_describes_has_no_description() -> None:
    assert description(described_models.Thing, "silent") == ""
    assert description(create_model("Made", __base__=View, x=(int, 1)), "x") == ""
    assert (
        "description"
        not in described_models.Thing.model_json_schema(schema_generator=DescribedSchema)["properties"]["silent"]
    )


def test_schemas_have_the_descriptions_by_the_names_that_callers_see() -> None:
    camel = CamelRequirement.model_json_schema(schema_generator=DescribedSchema)["properties"]
    assert camel["minValues"]["description"] == description(CamelRequirement, "min_values")


def test_a_description_that_a_field_gives_itself_stays() -> None:
    schema = described_models.Thing.model_json_schema(schema_generator=DescribedSchema)
    assert schema["properties"]["given_name"]["description"] == "From the field itself."


def test_texts_are_paragraphs_of_markdown() -> None:
    assert plain("One ``code``\n    goes on.\n\n    Two.") == "One `code` goes on.\n\nTwo."
    assert first_sentence(described_models.Thing) == "A thing."
