"""Published definitions of kinds that hosts of machines serve: KubeVirt's and Metal3's, see ``README.md``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

KUBEVIRT, METAL3 = "kubevirt", "metal3"


@cache
def definitions(project: str) -> Sequence[Mapping[str, Any]]:
    """The CustomResourceDefinitions of a project, as its API server's administrator applies them."""
    text = Path(__file__).with_name(f"{project}.json").read_text(encoding="utf-8")
    return tuple(json.loads(text).values())
