"""The API's document leaves nothing unsaid: descriptions of everything, examples that its own schemas take."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from local import openapi as generator

ROOT = Path(__file__).resolve().parents[3]
DOCUMENT: dict[str, Any] = json.loads((ROOT / "openapi.json").read_text(encoding="utf-8"))
MOST_BYTES = 2 * 1024 * 1024
"""A function answers with at most 6 MiB, in base 64."""


def parts(node: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """Every object of a document with where it is."""
    if isinstance(node, dict):
        yield at, node
    for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from parts(value, f"{at}/{key}")


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every operation with its method and path."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def inlined(document: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """Schema that a reference stands for."""
    while "$ref" in part:
        _, _, kind, name = part["$ref"].split("/")
        part = document["components"][kind][name]
    return part


def is_sentence(text: Any) -> bool:
    """Whether it is words for people, from the first letter to the full stop."""
    return isinstance(text, str) and len(text) > 8 and text[0] in f"`{text[0].upper()}" and text.rstrip()[-1] in ".:"


def unsaid(document: dict[str, Any]) -> list[str]:
    """Places where a description is missing that is needed, or is no sentence."""
    missing = []
    for name, operation in operations(document):
        missing += [f"{name} summary"] if not operation.get("summary") else []
        missing += [f"{name} description"] if not is_sentence(operation.get("description")) else []
        for parameter in (inlined(document, part) for part in operation["parameters"]):
            if not is_sentence(parameter.get("description")):
                missing.append(f"{name} {parameter['name']}")
    for at, part in parts({"paths": document["paths"], "components": document["components"]}):
        properties = part.get("properties")
        if isinstance(properties, dict) and "/example" not in at and not at.endswith("/properties"):
            missing += [
                f"{at}/{name}" for name, field in properties.items() if not is_sentence(field.get("description"))
            ]
    schemas = document["components"]["schemas"].items()
    missing += [f"schema {name}" for name, schema in schemas if not is_sentence(schema.get("description"))]
    missing += [f"tag {tag['name']}" for tag in document["tags"] if not is_sentence(tag.get("description"))]
    return missing


def misfits(document: dict[str, Any]) -> tuple[int, list[str]]:
    """The number of examples, and the errors of the examples that their own schema refuses."""
    count, faults = 0, []
    for at, part in parts({"paths": document["paths"], "components": document["components"]}):
        if "schema" not in part or not ({"example", "examples"} & part.keys()):
            continue
        validator = Draft202012Validator({**part["schema"], "components": document["components"]})
        samples = [part["example"]] if "example" in part else []
        samples += [inlined(document, example)["value"] for example in part.get("examples", {}).values()]
        count += len(samples)
        faults += [f"{at}: {fault.json_path}: {fault.message}" for e in samples for fault in validator.iter_errors(e)]
    return count, faults


def test_everything_has_a_description_of_a_sentence() -> None:
    assert unsaid(DOCUMENT) == []


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (("paths", "/v1/clusters", "post"), "POST /v1/clusters description"),
        (("components", "parameters", "ClusterId"), "GET /v1/clusters/{id} id"),
        (("components", "schemas", "ClusterView", "properties", "status"), "/components/schemas/ClusterView/status"),
        (("components", "schemas", "ClusterView"), "schema ClusterView"),
        (("tags", 0), "tag allowed-node-types"),
    ],
)
def test_what_is_missing_is_seen(path: tuple[str | int, ...], name: str) -> None:
    document = json.loads(json.dumps(DOCUMENT))
    part = document
    for key in path:
        part = part[key]
    del part["description"]
    assert name in unsaid(document)


def test_examples_are_as_their_schemas_say() -> None:
    count, faults = misfits(DOCUMENT)
    assert faults == []
    assert count > 150


def test_an_example_that_its_schema_refuses_is_seen() -> None:
    document = json.loads(json.dumps(DOCUMENT))
    document["components"]["examples"]["ClusterCreate"]["value"]["nmae"] = "demo"
    assert any("nmae" in fault for fault in misfits(document)[1])


def test_each_body_and_each_refusal_has_an_example() -> None:
    bodies = {
        name: operation["requestBody"]["content"]["application/json"]
        for name, operation in operations(DOCUMENT)
        if "requestBody" in operation
    }
    assert len(bodies) > 30
    assert [name for name, content in bodies.items() if "examples" not in content] == []
    refusals = DOCUMENT["components"]["responses"]
    for name, response in refusals.items():
        for media, content in response["content"].items():
            assert {"example", "examples"} & content.keys(), f"{name} {media}"


def test_each_example_is_shown_somewhere() -> None:
    samples = [value for _, part in parts(DOCUMENT["components"]["examples"]) for value in part.values()]
    pages = [part["example"] for _, part in parts(DOCUMENT["paths"]) if "items" in part.get("example", ())]
    samples += [item for page in pages for item in page["items"]]
    assert [name for name, example in generator.examples().items() if example not in samples] == []


def test_operation_ids_are_unique_and_tags_are_declared() -> None:
    counts = Counter(operation["operationId"] for _, operation in operations(DOCUMENT))
    assert [name for name, count in counts.items() if count > 1] == []
    tags = [tag["name"] for tag in DOCUMENT["tags"]]
    assert tags == sorted({tag for _, operation in operations(DOCUMENT) for tag in operation["tags"]})


def test_document_fits_the_answer_of_a_function() -> None:
    assert (ROOT / "openapi.json").stat().st_size < MOST_BYTES
