"""The code: one asset for each function, one layer of ours, one of third parties."""

from __future__ import annotations

from pathlib import Path

from aws_cdk import IgnoreMode
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from layers.vendor.bundle import bundle, common

ROOT = Path(__file__).resolve().parents[2]
CACHES = ["**/__pycache__", "**/__pycache__/**", "**/*.pyc"]
RUNTIME = lambda_.Runtime.PYTHON_3_13
ARCHITECTURE = lambda_.Architecture.ARM_64


class Layers(Construct):
    """``common`` (our core) and ``vendor``. Without ``bundled`` the second is an empty stand-in, which is enough to
    look at the templates and for the local cloud, but not to deploy."""

    def __init__(self, scope: Construct, id: str, *, bundled: bool) -> None:
        super().__init__(scope, id)
        source = ROOT / "layers" / "common"
        folder = common() if bundled else source
        caches = CACHES if folder == source else []
        own = lambda_.Code.from_asset(str(folder), exclude=[*caches, "**/py.typed"], ignore_mode=IgnoreMode.GLOB)
        vendor = (
            lambda_.Code.from_asset(str(bundle()))
            if bundled
            else lambda_.Code.from_asset(
                str(ROOT / "layers" / "vendor"), exclude=["**", "!bundle.py"], ignore_mode=IgnoreMode.GLOB
            )
        )
        self.both = [self._layer("Common", "The core of Stockyard", own), self._layer("Vendor", "Pins", vendor)]

    def _layer(self, id: str, description: str, code: lambda_.Code) -> lambda_.LayerVersion:
        return lambda_.LayerVersion(
            self,
            id,
            code=code,
            description=description,
            compatible_runtimes=[RUNTIME],
            compatible_architectures=[ARCHITECTURE],
        )


BESIDE = {
    "machines": ("agent",),
    "cluster_phases": ("agent",),
    "sites": ("agent",),
    "records": ("openapi.json",),
}
"""What a function needs besides its own folder: control planes download the agent from the first, the second installs
it where a cluster has no machine that does, the third gives the connector of a site; the last serves the document."""


def function_code(name: str) -> lambda_.Code:
    """The asset with ``functions/<name>`` only. The path stays, so that imports are the same as in the repository."""
    folders = (f"functions/{name}", *BESIDE.get(name, ()))
    own = [
        "!functions",
        "!functions/__init__.py",
        *(pattern for folder in folders for pattern in (f"!{folder}", f"!{folder}/**")),
    ]
    exclude = ["**", ".*", *own, *CACHES]
    return lambda_.Code.from_asset(str(ROOT), exclude=exclude, ignore_mode=IgnoreMode.GLOB)
