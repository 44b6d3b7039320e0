"""``cdk.json`` sets every feature flag that the installed CDK library recommends; each exception has a reason."""

from __future__ import annotations

import json
import tarfile
from importlib.resources import files
from pathlib import Path
from typing import Any

CONTEXT = json.loads((Path(__file__).parents[2] / "cdk.json").read_text())["context"]
OWN_VALUES = {
    "@aws-cdk/aws-iam:minimizePolicies": "the proof of least privilege names statements, so they stay apart",
    "@aws-cdk/core:defaultCrossStackReferences": "an export keeps the table's stream from being replaced unnoticed",
    "@aws-cdk/core:target-partitions": "the stages run in the standard partition",
}


def recommended_flags() -> dict[str, Any]:
    """Flag -> recommended value, as the library brings it."""
    archive = next(path for path in (files("aws_cdk") / "_jsii").iterdir() if path.name.endswith(".tgz"))
    with tarfile.open(str(archive)) as packed:
        file = packed.extractfile("package/recommended-feature-flags.json")
        assert file is not None
        flags: dict[str, Any] = json.load(file)
    return flags


def test_recommended_feature_flags_are_set() -> None:
    flags = {name: value for name, value in CONTEXT.items() if name.startswith("@")}
    differing = {name for name, value in recommended_flags().items() if flags.get(name) != value}
    assert differing == set(OWN_VALUES)
    assert set(flags) == set(recommended_flags())
