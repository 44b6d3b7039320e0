"""The program of a run, with a program in OpenTofu's place that does as each test says."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stockyard.providers.nodes.terraform import program as archived_program
from stockyard.providers.nodes.terraform.stockyard_run import __main__ as program
from stockyard.providers.nodes.terraform.stockyard_run import api as run_calls
from stockyard.providers.nodes.terraform.stockyard_run import tofu as tofu_process
from stockyard.providers.nodes.terraform.stockyard_run.api import RunError
from stockyard.providers.nodes.terraform.stockyard_run.template import has_backend, unpacked
from tests.harness.runs.git_server import GitServer
from tests.harness.runs.git_server import serving as serving_git
from tests.harness.worlds.run_api import TOKEN, RunApi, archive, serving

PLAYED = """#!{python}
import json, os, signal, sys, time
room = {room!r}
name = sys.argv[1]
with open(os.path.join(room, "calls.jsonl"), "a") as file:
    files = sorted(os.listdir("."))
    kubeconfig = os.environ.get("KUBECONFIG")
    if kubeconfig:
        files += [oct(os.stat(kubeconfig).st_mode)[-3:], open(kubeconfig).read().replace("canary", "secret")]
    file.write(json.dumps({{"arguments": sys.argv[1:], "environment": dict(os.environ), "files": files}}) + "\\n")
play = json.load(open(os.path.join(room, "plays.json"))).get(name, {{}})
if play.get("deaf"):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
for line in play.get("lines", ()):
    print(line, flush=True)
time.sleep(play.get("sleeps", 0))
sys.exit(play.get("exit", 0))
"""
TASK: dict[str, Any] = {
    "command": "apply",
    "files": archive({"main.tf": 'output "x" {\n  value = 1\n}\n'}),
    "variables": {"vcluster": {"name": "n1"}},
    "environment": {"AWS_REGION": "eu-west-1"},
    "secrets": ["hunter2-of-the-owner"],
    "passphrase": "p" * 64,
    "timeout_seconds": 60,
}


class Played:
    """A program in OpenTofu's place, and what it was called with."""

    def __init__(self, room: Path) -> None:
        self.room, self.path = room, room / "tofu"
        self.path.write_text(PLAYED.format(python=sys.executable, room=str(room)))
        self.path.chmod(self.path.stat().st_mode | stat.S_IXUSR)
        self.plays(output={"lines": ["{}"]})

    def plays(self, **plays: Any) -> None:
        (self.room / "plays.json").write_text(json.dumps(plays))

    @property
    def calls(self) -> list[dict[str, Any]]:
        path = self.room / "calls.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def names(self) -> list[str]:
        return [call["arguments"][0] for call in self.calls]


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Played:
    monkeypatch.setattr(run_calls, "SEND_SECONDS", 0.01)
    monkeypatch.setattr(tofu_process, "END_SECONDS", 60)
    return Played(tmp_path)


@pytest.fixture
def api() -> Iterator[RunApi]:
    with serving(RunApi(dict(TASK))) as api:
        yield api


def run(api: RunApi, played: Played, number: int = 1, **more: str) -> int:
    api.run = number
    environment = {"PATH": os.environ["PATH"], "STOCKYARD_RUN_URL": api.url, "STOCKYARD_RUN_TOKEN": TOKEN, **more}
    return program.main({**environment, "STOCKYARD_TOFU": str(played.path)})


def test_an_applied_template_ends_with_its_outputs(api: RunApi, played: Played) -> None:
    outputs = {"ip": {"value": "10.0.0.1", "type": "string", "sensitive": False}}
    played.plays(apply={"lines": ["Apply complete!"]}, output={"lines": [json.dumps(outputs)]})
    assert run(api, played) == 0
    [end] = api.ends
    assert (end["end"], end["error"], end["is_empty"]) == ("done", None, False)
    assert end["result"]["outputs"] == {"ip": {"value": "10.0.0.1", "sensitive": False}}
    assert played.names == ["init", "apply", "output"]
    assert "Apply complete!" in api.lines
    assert "stockyard_backend_override.tf.json" in played.calls[1]["files"]


def test_a_second_start_of_an_attempt_does_nothing(api: RunApi, played: Played) -> None:
    assert [run(api, played), run(api, played)] == [0, 0]
    assert (len(api.ends), played.names) == (1, ["init", "apply", "output"])
    assert run(api, played, number=2) == 0
    assert len(api.ends) == 2


def test_opentofu_gets_its_own_home_and_nothing_of_ours(api: RunApi, played: Played) -> None:
    run(api, played, SECRET_OF_THE_MACHINE="x", AWS_REGION="us-east-1", AWS_CONTAINER_CREDENTIALS_RELATIVE_URI="/v2/c")
    inherited = played.calls[1]["environment"]
    assert not any(name.startswith("STOCKYARD") or "SECRET" in name for name in inherited)
    assert Path(inherited["HOME"]).name == "home"
    assert inherited["AWS_REGION"] == "eu-west-1", "the document's own comes first"
    assert inherited["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"] == "/v2/c"
    assert (inherited["TF_HTTP_ADDRESS"], inherited["TF_HTTP_LOCK_METHOD"]) == (f"{api.url}/state", "PUT")
    sealed = json.loads(inherited["TF_ENCRYPTION"])
    assert sealed["state"]["enforced"] is sealed["plan"]["enforced"] is True
    assert not Path(inherited["HOME"]).exists(), "nothing is left behind"


def test_a_template_with_a_backend_of_its_own_keeps_it(api: RunApi, played: Played) -> None:
    api.task["files"] = archive({"main.tf": 'terraform { backend "s3" {} }'})
    run(api, played)
    assert "stockyard_backend_override.tf.json" not in played.calls[1]["files"]
    assert not any(name.startswith(("TF_HTTP", "TF_ENCRYPTION")) for name in played.calls[1]["environment"])


@pytest.mark.parametrize(
    ("text", "is_own"),
    [
        ('terraform {\n  backend "s3" {}\n}', True),
        ('terraform {\n  required_version = "1"\n  cloud {\n  }\n}', True),
        ('terraform { required_providers { x = {} } }\nresource "x" "backend" { backend "s3" {} }', False),
        ('# terraform { backend "s3" {} }', False),
        ('/* terraform {\n backend "s3" {} } */', False),
        ('output "x" { value = "terraform { backend \\"s3\\" {} }" }', False),
        ('locals { x = <<EOT\nterraform { backend "s3" {} }\nEOT\n}', False),
        ('locals { x = "a" } # "\nterraform { backend "local" {} }', True),
    ],
)
def test_backends_are_found_in_templates_alone(tmp_path: Path, text: str, is_own: bool) -> None:
    (tmp_path / "main.tf").write_text(text)
    assert has_backend(tmp_path) is is_own


def test_backends_are_found_in_templates_in_json(tmp_path: Path) -> None:
    (tmp_path / "main.tf.json").write_text('{"terraform": [{"backend": {"s3": {}}}]}')
    assert has_backend(tmp_path)
    (tmp_path / "main.tf.json").write_text('{"output": {"backend": {"value": "backend"}}}')
    assert not has_backend(tmp_path)


def test_a_failed_apply_is_destroyed_in_the_same_attempt(api: RunApi, played: Played) -> None:
    played.plays(apply={"exit": 1, "lines": ["╷", "│ Error: no room", "╵"]})
    run(api, played)
    [end] = api.ends
    assert (end["end"], end["error"]) == ("failed", "tofu apply ended with 1: Error: no room")
    assert end["is_empty"]
    assert played.names == ["init", "apply", "destroy"]


def test_a_failed_apply_leaves_what_stood_before(api: RunApi, played: Played) -> None:
    played.plays(apply={"exit": 1, "lines": ["Error: no room"]})
    api.task["keep"] = True
    run(api, played)
    assert (api.ends[0]["end"], api.ends[0]["is_empty"], played.names) == ("failed", False, ["init", "apply"])


def test_a_kubeconfig_is_a_file_of_the_run_alone(api: RunApi, played: Played) -> None:
    api.task["kubeconfig"] = "users: [canary]"
    run(api, played)
    environment = played.calls[0]["environment"]
    assert played.calls[0]["files"][-2:] == ["600", "users: [secret]"]
    path = Path(environment["KUBECONFIG"])
    assert environment["KUBE_CONFIG_PATH"] == str(path)
    assert not path.exists(), "it goes with the run"
    assert "canary" not in json.dumps(played.calls)
    assert "canary" not in "".join(api.lines)


def test_what_could_not_be_destroyed_is_told(api: RunApi, played: Played) -> None:
    played.plays(apply={"exit": 1}, destroy={"exit": 1})
    run(api, played)
    assert "could not all be destroyed" in api.ends[0]["error"]
    assert api.ends[0]["is_empty"] is False


def test_a_time_out_has_two_ends_of_its_own(api: RunApi, played: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    api.task["timeout_seconds"] = 3
    played.plays(apply={"sleeps": 30})
    run(api, played)
    assert (api.ends[0]["end"], api.ends[0]["error"]) == ("interrupted", "The run was interrupted at its time-out.")
    assert played.names == ["init", "apply", "destroy"]
    played.plays(apply={"sleeps": 30, "deaf": True})
    monkeypatch.setattr(tofu_process, "END_SECONDS", 0.3)
    run(api, played, number=2)
    assert api.ends[1]["end"] == "killed"
    assert played.names[3:] == ["init", "apply"], "a state that may lack something is not destroyed by"


def test_a_run_that_nobody_needs_is_interrupted_and_what_it_made_destroyed(
    api: RunApi, played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_calls, "ALIVE_SECONDS", 0.05)
    api.task["timeout_seconds"], api.needed_until = 600, "It makes something."
    played.plays(apply={"lines": ["It makes something."], "sleeps": 600})
    run(api, played)
    [end] = api.ends
    assert (end["end"], end["error"]) == ("interrupted", "The run was interrupted at the deletion of what it was for.")
    assert (played.names, end["is_empty"]) == (["init", "apply", "destroy"], True)


def test_the_next_attempt_breaks_the_lock_of_one_that_died(api: RunApi, played: Played) -> None:
    api.task["unlock"] = "lock-1"
    played.plays(**{"force-unlock": {"exit": 1}}, output={"lines": ["{}"]})
    run(api, played)
    assert played.calls[1]["arguments"] == ["force-unlock", "-force", "lock-1"]
    assert (played.names[2], api.ends[0]["end"]) == ("apply", "done")


def test_a_plan_says_whether_something_differs(api: RunApi, played: Played) -> None:
    api.task["command"] = "plan"
    summary = "Plan: 0 to add, 1 to change, 0 to destroy."
    for code, lines, drifted in ((0, ["No changes."], False), (2, ["...", summary], True)):
        played.plays(plan={"exit": code, "lines": lines})
        run(api, played, number=code + 1)
        assert api.ends[-1]["result"] == {"drifted": drifted, "summary": lines[-1]}
    played.plays(plan={"exit": 1, "lines": ["Error: no"]})
    run(api, played, number=9)
    assert api.ends[-1]["end"] == "failed"


def test_secrets_are_hidden_before_a_line_leaves_the_machine(api: RunApi, played: Played) -> None:
    played.plays(
        apply={"lines": [f"x {TOKEN} y {'p' * 64}", "hunter2-of-the-owner", "plain"]}, output={"lines": ["{}"]}
    )
    run(api, played)
    assert [line for line in api.lines if not line.startswith("$")] == ["x (hidden) y (hidden)", "(hidden)", "plain"]
    assert TOKEN not in json.dumps(api.ends)


def test_calls_that_may_pass_are_tried_again_and_no_line_is_lost(
    api: RunApi, played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    api.refusals = {"begin": [503], "log": [500, 429, 502], "end": [503, 503]}
    played.plays(apply={"lines": [f"line {number}" for number in range(1200)]}, output={"lines": ["{}"]})
    assert run(api, played) == 0
    assert [line for line in api.lines if line.startswith("line")] == [f"line {number}" for number in range(1200)]
    assert len(api.ends) == 1


def test_an_attempt_that_is_over_is_not_begun(api: RunApi, played: Played) -> None:
    api.refusals = {"begin": [403]}
    assert run(api, played) == 1
    assert played.names == []


def test_files_outside_of_the_folder_are_refused(tmp_path: Path) -> None:
    for name in ("../evil.tf", "/etc/evil.tf", "a/../../evil.tf"):
        with pytest.raises(RunError, match="not taken"):
            unpacked(archive({name: "x"}), tmp_path / name.replace("/", "_"))
    assert not (tmp_path / "evil.tf").exists()


def test_links_in_an_archive_are_refused(tmp_path: Path) -> None:
    import base64
    import io

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        link = tarfile.TarInfo("main.tf")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    with pytest.raises(RunError, match=r"main\.tf"):
        unpacked(base64.b64encode(buffer.getvalue()).decode(), tmp_path / "template")


def test_a_template_of_a_repository_is_taken_at_its_path(api: RunApi, played: Played, tmp_path: Path) -> None:
    with serving_git(GitServer(tmp_path / "git")) as git:
        first = git.commit("nodes", {"main.tf": "# one", "large/main.tf": "# large"}, tag="v1")
        second = git.commit("nodes", {"main.tf": "# two"})
        git_source = {"repository": f"{git.url}/nodes.git", "plain": True}
        api.task |= {"files": None}
        for number, (more, commit) in enumerate(
            (
                ({"commit": first}, first),
                ({"ref": "refs/tags/v1", "sub_path": "large"}, first),
                ({"ref": "refs/heads/main"}, second),
                ({"ref": "HEAD"}, second),
            ),
            1,
        ):
            api.task["git"] = {**git_source, **more}
            run(api, played, number)
            assert (api.ends[-1]["end"], api.ends[-1]["error"], api.ends[-1]["commit"]) == ("done", None, commit)
        api.task |= {"git": {**git_source, "ref": "refs/heads/main"}, "commit": first}
        run(api, played, 5)
        assert api.ends[-1]["commit"] == first, "what was applied is removed by the same"
        del api.task["commit"]
        for number, (name, value) in enumerate(
            (("sub_path", "../.."), ("sub_path", "nowhere"), ("commit", "f" * 40), ("ref", "--upload-pack=touch x")), 6
        ):
            api.task["git"] = {**git_source, name: value}
            run(api, played, number)
            assert api.ends[-1]["end"] == "failed"
        assert "git fetch failed" in api.ends[-1]["error"]


def test_credentials_of_git_reach_git_alone(api: RunApi, played: Played, tmp_path: Path) -> None:
    with serving_git(GitServer(tmp_path / "git")) as git:
        git.commit("nodes", {"main.tf": ""})
        git.credentials = "robot:canary-of-git"
        api.task |= {"files": None, "git": {"repository": f"{git.url}/nodes.git", "plain": True, "ref": "HEAD"}}
        run(api, played)
        assert api.ends[-1]["end"] == "failed"
        run(api, played, 2, STOCKYARD_GIT_CREDENTIALS="robot:canary-of-git")
        assert api.ends[-1]["end"] == "done"
    assert "canary" not in json.dumps([api.lines, api.ends, played.calls])


def test_secrets_of_the_account_are_variables_of_opentofu_and_hidden(api: RunApi, played: Played) -> None:
    api.task |= {"inherited": ["API_TOKEN"], "bundles": ["STOCKYARD_CREDENTIALS_0"]}
    bundle = json.dumps({"ARM_CLIENT_SECRET": "canary-of-azure"})
    played.plays(apply={"lines": ["canary-of-azure canary-of-api"]}, output={"lines": ["{}"]})
    run(api, played, API_TOKEN="canary-of-api", STOCKYARD_CREDENTIALS_0=bundle)
    inherited = played.calls[1]["environment"]
    assert (inherited["API_TOKEN"], inherited["ARM_CLIENT_SECRET"]) == ("canary-of-api", "canary-of-azure")
    assert "canary" not in json.dumps([api.lines, api.ends])
    run(api, played, 2, API_TOKEN="x", STOCKYARD_CREDENTIALS_0="no object")
    assert (api.ends[-1]["end"], api.ends[-1]["error"]) == ("failed", "A secret with credentials is no object of JSON.")


def test_what_an_earlier_run_may_have_made_is_learned_before_it_is_destroyed(api: RunApi, played: Played) -> None:
    api.task |= {"command": "destroy", "unsure": True}
    played.plays(apply={"exit": 1})
    run(api, played)
    assert (played.names, api.ends[0]["end"]) == (["init", "apply", "destroy"], "done")
    assert api.ends[0]["is_empty"]


def test_the_program_is_one_file_and_the_same_bytes(api: RunApi, played: Played, tmp_path: Path) -> None:
    path = tmp_path / "program.pyz"
    path.write_bytes(archived_program.program())
    archived_program.program.cache_clear()
    assert path.read_bytes() == archived_program.program()
    assert len(path.read_bytes()) < 12_000, "a buildspec has to carry it, in base 64"
    environment = {"PATH": os.environ["PATH"], "STOCKYARD_RUN_URL": api.url, "STOCKYARD_RUN_TOKEN": TOKEN}
    environment["STOCKYARD_TOFU"] = str(played.path)
    subprocess.run([sys.executable, "-I", str(path)], check=True, env=environment)
    assert api.ends[0]["end"] == "done"
