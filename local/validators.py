"""Validators that others wrote, on everything that is generated: cfn-lint on the stacks, with and without CloudFront,
and on a tenant's template, asl-validator on the workflow documents, Redocly's linter on ``openapi.json``.

    python -m local.validators

The last two are packages of npm, pinned in ``requirements/validators`` and installed into ``.cache/validators``. Where
npm's registry is out of reach they are left out with a sentence; in CI (``CI`` is set) that is a failure.
Exit 1 when a validator has a finding; it prints what it has to say.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

from stockyard.domain.records import CloudAccount
from stockyard.providers.clouds.aws.policies import tenant_template
from stockyard.providers.clouds.aws.runs import template as run_template

ROOT = Path(__file__).resolve().parent.parent
PINS = ROOT / "requirements" / "validators"
CACHE = ROOT / ".cache" / "validators"
BIN = Path(sys.executable).parent
"""Programs of the virtual environment. Node and npm come as a wheel."""
SECONDS = 300
CLOUDFRONT = {
    "domain": "api.example.com",
    "region": "eu-west-1",
    "certificate_arn": "arn:aws:acm:eu-west-1:111111111111:certificate/0a1b",
    "cloudfront": {
        "certificate_arn": "arn:aws:acm:us-east-1:111111111111:certificate/2c3d",
        "origin_key_hashes": ["0" * 64],
        "accept_direct": True,
    },
}
"""The settings of a stage with CloudFront in front of the API."""
CDK_OWN = ("W3005",)
"""Rules of cfn-lint that the CDK's own output breaks: it names dependencies that a reference already implies."""


def tenant_documents() -> Mapping[str, Mapping[str, object]]:
    """A tenant's templates with values of the longest kind that a stage has."""
    role = "arn:aws:iam::222222222222:role/vantage-stockyard"
    account = CloudAccount(
        id="1",
        provider="aws",
        name="lint",
        description="",
        attributes={"account_id": "222222222222", "role_arn": role, "region": "us-east-1"},
        external_id="x" * 32,
        verification="unverified",
        verification_message="",
        created_at="",
        updated_at="",
    )
    stage = SimpleNamespace(
        name_prefix="vantage",
        principal_pattern="arn:aws:iam::111111111111:role/Stockyard-prod-*",
    )
    return {
        "Tenant": tenant_template.render(account, "01KDVJXQ80000000000000000A", stage),
        "Runs": run_template.render(account, stage.name_prefix),
    }


def installed() -> Path | None:
    """The folder of npm's validators, or None when they cannot be installed here."""
    pins, complete = (PINS / "package-lock.json").read_text(), CACHE / "complete"
    if complete.exists() and complete.read_text() == pins:
        return CACHE
    shutil.rmtree(CACHE, ignore_errors=True)
    shutil.copytree(PINS, CACHE)
    command = [str(BIN / "npm"), "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    done = subprocess.run(command, cwd=CACHE, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode == 0:
        complete.write_text(pins)  # last, so that an installation that was cut off is made again
        return CACHE
    shutil.rmtree(CACHE, ignore_errors=True)
    sys.stderr.write(f"npm did not install the validators: {done.stderr.strip()[-300:]}\n")
    return None


def synthesize(folder: Path) -> None:
    """Write the stage ``dev`` into ``folder``, and into ``cloudfront`` in it the same with CloudFront."""
    plain = [sys.executable, "-m", "stacks.synth", "--no-bundle", "--out", str(folder)]
    subprocess.run(plain, cwd=ROOT, check=True, capture_output=True, timeout=SECONDS)
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    context |= {"bundle": "false", "check_issuer": "false", **CLOUDFRONT}
    environment = {"CDK_CONTEXT_JSON": json.dumps(context), "CDK_OUTDIR": str(folder / "cloudfront")}
    subprocess.run(
        [sys.executable, "app.py"],
        cwd=ROOT,
        env={**os.environ, **environment},
        check=True,
        capture_output=True,
        timeout=SECONDS,
    )


def commands(assembly: Path, packages: Path | None) -> Iterator[Sequence[str]]:
    """Commands to run, in order."""
    templates = sorted(str(path) for path in assembly.glob("**/*.template.json"))
    yield [str(BIN / "cfn-lint"), "--regions", "us-east-1", "--ignore-checks", *CDK_OWN, "--", *templates]
    if packages is not None:
        node, programs = str(BIN / "node"), packages / "node_modules"
        for document in sorted((assembly / "workflows").glob("*.asl.json")):
            yield [node, str(programs / "asl-validator/dist/bin/asl-validator.js"), "--json-path", str(document)]
        rules = str(PINS / "redocly.yaml")
        redocly = str(programs / "@redocly/cli/bin/cli.js")
        yield [node, redocly, "lint", "--config", rules, "--format", "stylish", str(ROOT / "openapi.json")]


def main() -> int:
    """Runs every validator; returns the exit code."""
    packages = installed()
    if packages is None and os.environ.get("CI"):
        return 1
    environment = {**os.environ, "REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"}
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        assembly = Path(folder)
        synthesize(assembly)
        for name, document in tenant_documents().items():
            (assembly / f"{name}.template.json").write_text(json.dumps(document, indent=1))
        for command in commands(assembly, packages):
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
            )
            if done.returncode:
                failures += 1
                sys.stderr.write(f"{' '.join(command)}\n{done.stdout}{done.stderr}\n")
    sys.stdout.write("Validators: " + ("no finding\n" if not failures else f"{failures} with findings\n"))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
