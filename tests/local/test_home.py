"""A start that has no chance is refused at once, in a sentence; what a killed local cloud has left is removed."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from local.cloud import ROOT
from local.home import StartError, check, take, tidy

PATH = os.pathsep.join(map(str, (ROOT, ROOT / "layers" / "common" / "python")))
HEAVY = ("aws_cdk", "local.cloud", "moto")
"""What a local cloud is made of and takes seconds to import: a refusal comes before."""
PROGRAM = """
import sys, local.__main__ as main
code = main.main(sys.argv[1:])
print(*sorted({heavy for heavy in %r if heavy in sys.modules}), end="")
raise SystemExit(code)
"""


def test_a_port_in_use_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(StartError, match=f"port {port} cannot be used .*PORT=0"):
            check(tmp_path, port)
    check(tmp_path, port)


def test_a_home_in_use_is_told_until_it_is_free(tmp_path: Path) -> None:
    with take(tmp_path), pytest.raises(StartError, match=r"runs in .* already: .*LOCAL_HOME"):
        check(tmp_path, 0)
    check(tmp_path, 0)


def test_leftovers_of_a_killed_cloud_go_and_logs_stay(tmp_path: Path) -> None:
    for name in ("machines/i-1", "managed/c-1", "pki", "logs", "cache"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "env").write_text("STOCKYARD_URL=http://127.0.0.1:1\n")
    tidy(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "logs"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["serve", "--faults", "missing.json"], "missing.json cannot be read: no such file or directory"),
        (["serve", "--faults", "wrong.json"], "wrong.json: machines.silnt: unknown field; did you mean silent?"),
        (["run", "--example", "missing.json"], "missing.json cannot be read: no such file or directory"),
        (["serve", "--home", "wrong.json"], "wrong.json cannot be used: file exists"),
    ],
)
def test_a_refusal_is_one_sentence_and_comes_before_the_heavy_imports(
    tmp_path: Path, options: list[str], sentence: str
) -> None:
    (tmp_path / "wrong.json").write_text('{"machines": {"silnt": 1}}')
    command = [sys.executable, "-c", PROGRAM % (HEAVY,), options[0], "--home", "home", *options[1:]]
    environment = {**os.environ, "PYTHONPATH": PATH}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, f"{sentence}\n", "")


def test_what_nobody_foresaw_is_one_sentence_too(tmp_path: Path) -> None:
    program = (
        "import local.home, local.__main__ as main\n"
        "local.home.check = lambda *_: 1 / 0\n"
        "raise SystemExit(main.main(['serve', '--home', 'home']))\n"
    )
    environment = {**os.environ, "PYTHONPATH": PATH}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    expected = "the local cloud failed: ZeroDivisionError: division by zero (home/logs/failure.log says where)\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, expected, "")
    assert "Traceback" in (tmp_path / "home" / "logs" / "failure.log").read_text()
