"""Synthesizes a stage without Node, Docker or AWS credentials on the machine, and fails on findings of cdk-nag.

    .venv/bin/python -m stacks.synth [--stage dev] [--no-bundle] [--out cdk.out] [--set KEY=VALUE ...]

Run it in the repository's root. It writes, for the stage ``dev``:

    OUT/Stockyard-dev-Data.template.json    the table; exports its stream's ARN
    OUT/Stockyard-dev.template.json         the rest; reads the stream's ARN by ``Fn::ImportValue``
    OUT/Stockyard-dev-Edge.template.json    CloudFront and its web ACL, where the stage asks for them
    OUT/asset.*                             code of functions and layers, and the workflow documents
    OUT/workflows/*.asl.json                the workflow documents by name, to be read

and prints OUT. A state machine names its document by ``DefinitionS3Location.Key``, ``<hash>.json``: that is
``OUT/asset.<hash>.json``; its ``${...}`` are filled from ``DefinitionSubstitutions``. ``--no-bundle`` leaves the
third-party layer out, which is enough for the local cloud and for tests. ``--set`` overrides a key of the stage's
configuration in ``cdk.json``. Exit codes: 0; 1 for a finding or a layer that cannot be built; 2 for the configuration.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from layers.vendor.bundle import BundleError
from stacks.config import load
from stacks.errors import ConfigError, NagError
from stacks.node import use_bundled_node

ROOT = Path(__file__).resolve().parents[1]


def synthesize(stage: str, out: Path, *, bundled: bool, overrides: Mapping[str, Any] | None = None) -> Path:
    """Write the assembly of ``stage`` into ``out`` and return it. Raises ``ConfigError``, ``NagError``,
    ``BundleError``."""
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    config = load(stage, context.get("stages"), overrides)
    use_bundled_node()
    # The CDK library starts Node when it is imported, so not before it is known which.
    from aws_cdk import App

    from stacks.application import build

    features = {key: value for key, value in context.items() if key.startswith("@")}
    app = App(outdir=str(out), context=features, analytics_reporting=False)
    build(app, config, bundled=bundled)
    return Path(app.synth().directory)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="stacks.synth", description="Synthesize a stage")
    parser.add_argument("--stage", default="dev")
    parser.add_argument("--no-bundle", action="store_true", help="leave the third-party layer out")
    parser.add_argument("--out", type=Path, default=ROOT / "cdk.out")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a configuration key")
    options = parser.parse_args(arguments)
    overrides = dict(pair.partition("=")[::2] for pair in options.set)
    try:
        out = synthesize(options.stage, options.out, bundled=not options.no_bundle, overrides=overrides)
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except (NagError, BundleError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{out}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
