"""Documents of files: their values, the line of each field, and what is said of those that cannot be read."""

from __future__ import annotations

import pytest

from stockyard.domain.values.yaml_documents import read_documents
from stockyard_client.cli.documents.bad_input import BadInput
from stockyard_client.cli.documents.documents import Document, document_of, documents_of
from stockyard_client.cli.documents.field_sources import FieldSource, location_of
from stockyard_client.cli.documents.pointers import dotted, tokens_of
from stockyard_client.cli.documents.sources import Source, sources_of

TEXT = """\
# two providers
kind: NodeProvider
apiVersion: stockyard/v1
metadata:
  name: lab
spec:
  nodeTypes:
    - name: small
      cpu: 1
    - name: large
---
---
- kind: Pool
  apiVersion: v1
- kind: NodeClaim
  apiVersion: v1
  metadata: {name: c1,
    labels: {a/b: x}}
"""


def read(text: str, name: str = "lab.yaml") -> list[Document]:
    return documents_of([Source(name, text)])


def test_documents_lists_and_empty_ones():
    assert [document.kind for document in read(TEXT)] == ["NodeProvider", "Pool", "NodeClaim"]


@pytest.mark.parametrize(
    ("number", "pointer", "location"),
    [
        (0, "", "lab.yaml:2 NodeProvider lab"),
        (0, "/spec/nodeTypes/0/cpu", "lab.yaml:9 NodeProvider lab spec.nodeTypes[0].cpu"),
        (0, "/spec/nodeTypes/1", "lab.yaml:10 NodeProvider lab spec.nodeTypes[1]"),
        (0, "/spec/nodeTypes/7/cpu", "lab.yaml:7 NodeProvider lab spec.nodeTypes[7].cpu"),
        (0, "/spec/displayName", "lab.yaml:6 NodeProvider lab spec.displayName"),
        (1, "/spec", "lab.yaml:13 Pool spec"),
        (2, "/metadata/labels/a~1b", 'lab.yaml:18 NodeClaim c1 metadata.labels["a/b"]'),
    ],
)
def test_a_field_is_named_by_its_line(number, pointer, location):
    assert read(TEXT)[number].location(tokens_of(pointer)) == location


LIST = """\
apiVersion: v1
kind: List
metadata:
  resourceVersion: ""
items:
- apiVersion: stockyard/v1
  kind: NodeProvider
  metadata:
    name: lab
- apiVersion: v1
  kind: List
  items:
  - apiVersion: stockyard/v1
    kind: Pool
    metadata:
      name: web
    spec:
      quantity: x
---
apiVersion: stockyard/v1
kind: NodeClaim
metadata:
  name: c1
"""


def test_a_list_of_kubernetes_is_its_items():
    documents = read(LIST)
    assert [(document.kind, document.name) for document in documents] == [
        ("NodeProvider", "lab"),
        ("Pool", "web"),
        ("NodeClaim", "c1"),
    ]
    assert [document.location(tokens_of("/metadata/name")) for document in documents] == [
        "lab.yaml:9 NodeProvider lab metadata.name",
        "lab.yaml:16 Pool web metadata.name",
        "lab.yaml:23 NodeClaim c1 metadata.name",
    ]
    assert documents[1].location(tokens_of("/spec/quantity")) == "lab.yaml:18 Pool web spec.quantity"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("apiVersion: v1\nkind: List\n", "lab.yaml:1 List items: a list of manifests is needed"),
        ("apiVersion: v1\nkind: List\nitems: {a: 1}\n", "lab.yaml:3 List items: a list of manifests is needed"),
        ("apiVersion: v1\nkind: List\nitems: [1]\n", "lab.yaml holds something else than objects"),
        ("apiVersion: v1\nkind: List\nitems: []\n", "lab.yaml holds no document"),
        ("- - kind: Pool\n", "lab.yaml holds a list in a list"),
    ],
)
def test_a_list_that_cannot_be_read(text, fault):
    with pytest.raises(BadInput) as refusal:
        read(text)
    assert str(refusal.value) == fault


def test_items_of_a_list_of_one_kind_have_its_version_and_kind():
    text = "apiVersion: karpenter.sh/v1\nkind: NodePoolList\nitems:\n- metadata:\n    name: a\n"
    (document,) = read(text)
    assert document.value == {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "a"}}
    assert document.location(tokens_of("/metadata/name")) == "lab.yaml:5 NodePool a metadata.name"


def test_a_list_of_another_api_is_a_manifest():
    assert [document.kind for document in read("apiVersion: x/v1\nkind: List\nitems: []\n")] == ["List"]


def test_lines_of_json_with_tabs():
    document = document_of(Source("body.json", '{\n\t"name":\t"demo",\n\t"settings":\t{\n\t\t"key_pair": 1}}'))
    assert document.location(["settings", "key_pair"], "cluster") == "body.json:4 cluster demo settings.key_pair"


def test_what_yaml_cannot_read_of_json_has_no_line():
    document = document_of(Source("body.json", '{"name": "\x7f"}'))
    assert document.location(["name"]) == "body.json name"


def test_dates_and_words_for_truth_stay_texts():
    values = read("at: 2026-01-31\nstate: On\nflag: true\n")[0].value
    assert values == {"at": "2026-01-31", "state": "On", "flag": True}


def test_plain_texts_have_the_types_of_yaml_1_2_as_the_api_reads_them() -> None:
    texts = "17:00 8080:53 = =~ 010 00 0x1f 0b11 1_000 On off yes NO 12e .inf .nan 0o17 x 2001-01-01 1:30:00 é"
    values = "1 -1 +1 0 1.5 .5 1. 1e3 1E+3 -1.5e-3 true TRUE False null ~ Null"
    for text in [*texts.split(), *values.split(), ""]:
        (document,) = read(f"a: {text}\n")
        assert [document.value] == read_documents(f"a: {text}\n"), text
    assert [read(f"a: {text}\n")[0].value["a"] for text in texts.split()] == texts.split()


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a: 1\nb: 2\na: 3\n", "lab.yaml:3: the key a stands twice in one object"),
        ('{"a": 1, "a": 2}', "lab.yaml: the key a stands twice in one object"),
        ("a: 1\n b: [\n", "lab.yaml:2:3: neither JSON nor YAML: mapping values are not allowed here"),
        ("a: *secret\n", "lab.yaml:1:4: neither JSON nor YAML"),
        ('{"a": x]', "lab.yaml:1:7: not JSON: Expecting value"),
        ("- 1\n", "lab.yaml holds something else than objects"),
        ("---\n", "lab.yaml holds no document"),
        ("a: " + "[" * 3000, "lab.yaml is nested too deeply"),
        ("a: &a [*a]\n", "lab.yaml holds an alias that leads back to what it stands in"),
        ("a: 1e999\n", "lab.yaml holds a number that is not finite"),
        ('{"a": 1e999}', "lab.yaml holds a number that is not finite"),
        ('{"a": ' + "1" * 5000 + "}", "lab.yaml holds a number of too many digits"),
        ('{"a": "\\ud800"}', "lab.yaml holds half of a character"),
        ("a: !!set {x}\n", "lab.yaml holds a value of a type that JSON has not"),
        ("---\nx: 1\n---\na: &a {b: [{c: *a}]}\n", "lab.yaml holds an alias that leads back to what it stands in"),
    ],
)
def test_what_cannot_be_read_is_named_without_its_text(text, fault):
    with pytest.raises(BadInput) as refused:
        read(text)
    assert str(refused.value) == fault


def test_what_is_merged_in_may_be_given_again():
    assert read("base: &b {a: 1, b: 2}\nown:\n  <<: *b\n  a: 3\n")[0].value["own"] == {"a": 3, "b": 2}


def test_an_alias_may_be_used_many_times():
    assert read("a: &a {x: [1]}\nb: [*a, *a]\nc: *a\n")[0].value["b"] == [{"x": [1]}, {"x": [1]}]


def test_one_document_is_needed():
    with pytest.raises(BadInput, match=r"lab\.yaml holds 3 documents, and one is needed here"):
        document_of(Source("lab.yaml", TEXT))


def test_files_of_folders_come_in_order(tmp_path):
    for name in ("b.yaml", "a.yml", "c.json", "notes.txt", "deep/d.yaml"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"name: {path.stem}\n")

    def names(*, recursive: bool) -> list[str]:
        return [source.text.split()[1] for source in sources_of([str(tmp_path)], recursive=recursive)]

    assert names(recursive=False) == ["a", "b", "c"]
    assert names(recursive=True) == ["a", "b", "c", "d"]
    (tmp_path / "none").mkdir()
    with pytest.raises(BadInput, match=r"holds no file that ends in \.yaml, \.yml, \.json; -R looks"):
        sources_of([str(tmp_path / "none")])


def test_a_url_is_not_fetched():
    with pytest.raises(BadInput, match="https://x/y is a URL"):
        sources_of(["https://x/y"])


def test_the_nearest_document_and_options_name_a_field():
    documents = read(TEXT)
    field_sources = [FieldSource(document, at=f"/{number}") for number, document in enumerate(documents)]
    assert location_of("/0/spec", field_sources) == "lab.yaml:6 NodeProvider lab spec"
    assert location_of("/2", field_sources) == "lab.yaml:15 NodeClaim c1"
    assert location_of("/20", field_sources) == "[20]"
    assert location_of("/0/spec/x", [*field_sources, FieldSource(options={"/0/spec": "--set spec"})]) == "--set spec"
    inside = [FieldSource(documents[0], inner="/spec")]
    assert location_of("/nodeTypes/0", inside) == "lab.yaml:8 NodeProvider lab spec.nodeTypes[0]"


def test_paths_of_people():
    assert dotted(["spec", "nodeTypes", "0", "a b", "c"]) == 'spec.nodeTypes[0]["a b"].c'
    assert tokens_of("/a~1b/~0c/0") == ["a/b", "~c", "0"]
    assert tokens_of("") == []
