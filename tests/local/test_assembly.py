"""The committed stage is that of the present inputs, holds what the local cloud reads, and is never used when stale."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local import assembly
from local.assembly import CONTRACT, DIGEST, FOLDER, ROOT, assembled, differences, digest, trimmed, write
from local.template import TemplateError

MACHINE = {
    "Type": "AWS::StepFunctions::StateMachine",
    "Properties": {"StateMachineName": "make", "DefinitionS3Location": {"Bucket": "assets", "Key": "12ab.json"}},
}
TEMPLATE = {
    "Description": "for people",
    "Parameters": {"P": {"Default": "1"}},
    "Resources": {
        "Alarm": {"Type": "AWS::CloudWatch::Alarm", "Properties": {"Threshold": 1}},
        "Function": {"Type": "AWS::Lambda::Function", "Properties": {"Code": {"S3Key": "34cd.zip"}, "Handler": "h"}},
        "Machine": MACHINE,
    },
}


@pytest.fixture
def cloud_assembly(tmp_path: Path) -> Path:
    folder = tmp_path / "cdk.out"
    folder.mkdir()
    (folder / "Some.template.json").write_text(json.dumps(TEMPLATE))
    (folder / "asset.12ab.json").write_text(json.dumps({"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}))
    (folder / "tree.json").write_text("{}")
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A tree with some inputs."""
    folder = tmp_path / "root"
    (folder / "stacks").mkdir(parents=True)
    (folder / "stacks" / "app.py").write_text("APP = 1\n")
    contract = {"paths": {"/v1/things": {"get": {"summary": "Some", "x-stockyard-function": "things"}}}}
    (folder / CONTRACT).write_text(json.dumps(contract))
    return folder


def test_the_committed_stage_is_of_the_present_inputs() -> None:
    text = (ROOT / FOLDER / DIGEST).read_text()
    assert text == f"{digest(ROOT)}\n", "the stacks or what they read have changed: make template"
    assert assembled(ROOT, Path("nowhere")) == ROOT / FOLDER


def test_only_what_the_local_cloud_reads_is_kept(cloud_assembly: Path) -> None:
    files = trimmed(cloud_assembly)
    assert set(files) == {"Some.template.json", "asset.make.json"}
    assert json.loads(files["asset.make.json"]) == {"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}
    template = json.loads(files["Some.template.json"])
    assert template["Parameters"] == TEMPLATE["Parameters"]
    assert "Description" not in template
    assert template["Resources"]["Alarm"] == {"Type": "AWS::CloudWatch::Alarm"}
    assert template["Resources"]["Function"]["Properties"] == {"Handler": "h"}
    assert template["Resources"]["Machine"]["Properties"]["DefinitionS3Location"]["Key"] == "make.json"


def test_what_is_written_has_no_differences_and_every_change_is_one(cloud_assembly: Path, root: Path) -> None:
    assert DIGEST in differences(cloud_assembly, root)
    write(cloud_assembly, root)
    assert differences(cloud_assembly, root) == []
    (root / FOLDER / "asset.make.json").write_text("{}")
    (root / FOLDER / "extra.json").write_text("{}")
    assert differences(cloud_assembly, root) == ["asset.make.json", "extra.json"]


def changed_contract(root: Path, **fields: Any) -> None:
    document = json.loads((root / CONTRACT).read_text())
    document["paths"]["/v1/things"]["get"] |= fields
    (root / CONTRACT).write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        (lambda root: (root / "stacks" / "app.py").write_text("APP = 2\n"), True),
        (lambda root: (root / "stacks" / "more.py").write_text(""), True),
        (lambda root: (root / "functions.py").write_text(""), False),
        (lambda root: changed_contract(root, summary="All of them"), False),
        (lambda root: changed_contract(root, **{"x-stockyard-function": "others"}), True),
    ],
)
def test_inputs_are_what_the_template_depends_on(root: Path, change: Callable[[Path], Any], counts: bool) -> None:
    before = digest(root)
    change(root)
    assert (digest(root) != before) is counts


def test_a_stale_stage_is_not_used(
    cloud_assembly: Path, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(cloud_assembly, root)
    (root / "stacks" / "app.py").write_text("APP = 2\n")
    monkeypatch.setattr(assembly, "find_spec", lambda _name: None)
    with pytest.raises(TemplateError, match="make template"):
        assembled(root, tmp_path / "cache")
    monkeypatch.setattr(assembly, "find_spec", lambda _name: object())
    target = tmp_path / "cache" / f"template-{digest(root)[:16]}"
    shutil.copytree(cloud_assembly, target)
    (target / "manifest.json").write_text("{}")
    assert assembled(root, tmp_path / "cache") == target
