"""Build of the third-party layer. The program ``uv`` is replaced: tests download nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from layers.vendor import bundle
from stacks.config import StageConfig
from stacks.errors import ConfigError


@pytest.fixture
def pins(tmp_path: Path) -> Path:
    path = tmp_path / "runtime.txt"
    path.write_text("one==1 --hash=sha256:00\n")
    return path


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    commands: list[list[str]] = []

    def run(arguments: list[str]) -> None:
        commands.append(arguments)
        if "--target" in arguments:
            target = Path(arguments[arguments.index("--target") + 1])
            (target / "bin").mkdir(parents=True)
            (target / "one" / "__pycache__").mkdir(parents=True)
            (target / "one" / "__init__.py").write_text("")

    monkeypatch.setattr(bundle, "_run", run)
    monkeypatch.setattr(bundle, "compiler", lambda: None)
    return commands


def test_bundle_installs_hashed_wheels_for_arm_and_python_3_13_only(tmp_path: Path) -> None:
    text = " ".join(bundle.command(tmp_path))
    assert f"--target {tmp_path} --python-platform aarch64-manylinux_2_28 --python-version 3.13" in text
    assert "--only-binary :all:" in text
    assert "--require-hashes" in text
    assert text.endswith("requirements/runtime.txt")


def test_bundle_is_built_once_for_same_pins(tmp_path: Path, pins: Path, calls: list[list[str]]) -> None:
    first = bundle.bundle(tmp_path / "build", pins)
    assert bundle.bundle(tmp_path / "build", pins) == first
    assert len(calls) == 1
    assert sorted(path.relative_to(first).as_posix() for path in first.rglob("*")) == [
        "python",
        "python/one",
        "python/one/__init__.py",
    ]


def test_bundle_is_rebuilt_for_other_pins(tmp_path: Path, pins: Path, calls: list[list[str]]) -> None:
    first = bundle.bundle(tmp_path / "build", pins)
    pins.write_text("one==2 --hash=sha256:01\n")
    assert bundle.bundle(tmp_path / "build", pins) != first
    assert len(calls) == 2


def test_bundle_compiles_bytecode_with_deployed_python_version_only(
    tmp_path: Path, pins: Path, calls: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle, "compiler", lambda: "/opt/python3.13")
    bundle.bundle(tmp_path / "build", pins)
    assert calls[1][:3] == ["/opt/python3.13", "-m", "compileall"]


def test_bundle_refuses_layer_above_size_limit(
    tmp_path: Path, pins: Path, calls: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle, "MOST_BYTES", -1)
    with pytest.raises(bundle.BundleError, match="-1 is the most"):
        bundle.bundle(tmp_path / "build", pins)
    assert list((tmp_path / "build").iterdir()) == []


def test_bundle_failure_shows_output_of_uv_and_leaves_no_files(tmp_path: Path, pins: Path) -> None:
    pins.write_text("this is no requirement\n")
    with pytest.raises(bundle.BundleError, match=r"(?s)uv failed:.+"):
        bundle.bundle(tmp_path / "build", pins)
    assert list((tmp_path / "build").iterdir()) == []


def test_tests_run_with_the_versions_that_are_deployed() -> None:
    def pins(name: str) -> set[str]:
        lines = (bundle.PINS.parent / name).read_text().splitlines()
        return {line.split(" ")[0] for line in lines if "==" in line and not line.startswith(" ")}

    runtime = pins("runtime.txt")
    assert runtime <= pins("dev.txt")
    assert {"boto3", "botocore", "pydantic"} <= {pin.split("==")[0] for pin in runtime}


def test_the_bytecode_of_our_layer_names_what_lambda_has_and_is_made_once(
    tmp_path: Path, calls: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "common"
    (source / "python" / "one" / "__pycache__").mkdir(parents=True)
    (source / "python" / "one" / "a.py").write_text("a = 1\n")
    (source / "python" / "one" / "__pycache__" / "a.pyc").write_text("another version's")
    builds = tmp_path / "build"
    assert bundle.common(source, builds) == source, "nothing here compiles it"
    monkeypatch.undo()
    monkeypatch.setattr(bundle, "compiler", lambda: sys.executable)
    first = bundle.common(source, builds)
    assert bundle.common(source, builds) == first
    (compiled,) = first.rglob("*.pyc")
    assert b"/opt/python/one/a.py" in compiled.read_bytes()
    assert str(tmp_path).encode() not in compiled.read_bytes()
    elsewhere = bundle.common(source, tmp_path / "another" / "place")
    (other,) = elsewhere.rglob("*.pyc")
    assert (elsewhere.name, other.read_bytes()) == (first.name, compiled.read_bytes()), "the same on every machine"
    (source / "python" / "one" / "a.py").write_text("a = 2\n")
    assert bundle.common(source, builds) != first


def test_production_is_refused_where_nothing_compiles_its_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    from aws_cdk import App

    from stacks import application

    monkeypatch.setattr(application, "compiler", lambda: None)
    config = StageConfig(stage="prod", issuer="https://id.example.com/realms/stockyard")
    with pytest.raises(ConfigError, match=r"stage prod: Python 3\.13.* uv python install 3\.13"):
        application.build(App(), config, bundled=True)
