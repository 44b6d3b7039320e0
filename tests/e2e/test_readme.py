"""Every command of README.md, docs/tour.md and client/README.md works as written, in order, after `make serve` and
`make run`."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

import pytest

from local.cloud import ROOT
from local.kubernetes.real.build import kubectl, releases
from local.testing.serving import Served, serving

CLIENTS = [path for path in map(kubectl, releases().values()) if path.exists()]
"""Each real kubectl that is built; what is typed with one is typed with each."""
LEFT_OUT = {
    r"make (run|test)\b.*": "starts the local cloud itself, or these tests",
    r"npx .*|aws .*": "deploys into a real account of AWS",
    r"pip install \./client": "make has installed it",
    r"export STOCKYARD_URL=https://.*|stockyard login --issuer .*": "a deployed API and its realm",
    **({} if CLIENTS else {r"kubectl .*": "none is built: make kubernetes does it"}),
}
"""Commands that are not run here -> why."""
DOCUMENTS = ("README.md", "docs/tour.md", "client/README.md")
SECONDS = 840
"""A busy machine takes many times the minute that an idle one does."""


def commands(document: str) -> list[str]:
    """The commands of a document's shell blocks, without comments; each part of an ``&&`` is one."""
    text = (ROOT / document).read_text()
    blocks = "".join(re.findall(r"^```sh\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))
    lines = blocks.replace("\\\n", " ").splitlines()
    listed = (part.strip() for line in lines for part in re.sub(r"\s+#.*", "", line).split(" && "))
    return [command for command in listed if command]


def is_left_out(command: str) -> bool:
    return any(re.fullmatch(pattern, command) for pattern in LEFT_OUT)


def tour() -> list[str]:
    """Commands that are run here, in order."""
    listed = [command for name in DOCUMENTS for command in commands(name) if not is_left_out(command)]
    return [each for is_kubectl, block in groupby(listed, _is_kubectl) for each in _typed(list(block), is_kubectl)]


def _is_kubectl(command: str) -> bool:
    return command.startswith("kubectl ")


def _typed(block: list[str], is_kubectl: bool) -> list[str]:
    """Commands of one program; those of kubectl once with each client."""
    if not is_kubectl:
        return block
    return [command.replace("kubectl", str(client), 1) for client in CLIENTS for command in block]


def script(listed: list[str]) -> str:
    """Runs the commands in one shell, as a person does, and ends at the first that fails or that the API refuses."""
    lines = ['curl() { command curl --fail-with-body --show-error "$@"; }']
    for command in listed:
        lines += [f"echo '$ {command.replace(chr(39), '')}'", command, '[ $? = 0 ] || { echo "it failed"; exit 1; }']
    return "\n".join(lines)


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """As ``make serve`` starts it, with the limits of rates too."""
    yield from serving(tmp_path_factory.mktemp("readme") / "home")


def followed(cloud: Served, listed: list[str], home: Path) -> str:
    """Output of a shell that runs the commands in the repository's root."""
    text = script(listed).replace(".local/env", str(cloud.home / "env"))
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}
    environment["PYTHONPATH"] = str(ROOT / "client")  # this tree's, wherever .venv has it from
    shell = ["bash", "-c", text]
    done = subprocess.run(
        shell,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def test_every_command_is_run_or_left_out_with_a_reason() -> None:
    listed = [command for name in DOCUMENTS for command in commands(name)]
    for pattern in LEFT_OUT:
        assert any(re.fullmatch(pattern, command) for command in listed), f"{pattern} leaves nothing out"
    assert len(tour()) > 25
    for client in CLIENTS:
        assert sum(command.startswith(f"{client} ") for command in tour()) >= 7, client
    assert not any(re.search(r"[ =]demo\b", command) for command in tour()), "demo is there after make run alone"


def test_a_command_that_fails_fails_the_tour(cloud: Served, tmp_path: Path) -> None:
    start = tour()[:2]
    for wrong in ("stockyard cluster get nothing", 'curl -s "$STOCKYARD_URL/v1/clusters"'):
        with pytest.raises(AssertionError, match="it failed"):
            followed(cloud, [*start, wrong], tmp_path)


@pytest.mark.timeout(900)
def test_the_commands_work_after_make_serve(cloud: Served, tmp_path: Path) -> None:
    output = followed(cloud, tour(), tmp_path)
    for sentence in ('"month":', "second", "first"):
        assert sentence in output
    for path in ("/v1/clusters", "/v1/node-providers", "/v1/node-claims"):
        assert cloud.call("GET", path).body["items"] == [], f"the tour leaves something in {path}"


@pytest.mark.timeout(900)
def test_the_commands_work_after_make_run(cloud: Served, tmp_path: Path, soaking: bool) -> None:
    """The start has made the example. Without the full counts only until the first cluster is made, and the dry runs:
    what follows was just done, and it names nothing that the start makes."""
    listed = tour()
    if not soaking:
        waits_at = next(index for index, command in enumerate(listed) if command.endswith("--wait"))
        listed = [*listed[:waits_at], *(command for command in listed if command.endswith("--dry-run"))]
    output = followed(
        cloud, [*listed[:2], "stockyard cluster create -f examples/aws-cluster.json", *listed[2:]], tmp_path
    )
    assert re.search(r'"name": ?"demo"', output), "the list of clusters has the one of make run"
    assert [item["name"] for item in cloud.call("GET", "/v1/clusters").body["items"]] == ["demo"]


@pytest.mark.timeout(900)
def test_the_commands_of_the_examples_work(tmp_path_factory: pytest.TempPathFactory, soaking: bool) -> None:
    if not soaking:
        pytest.skip("four clusters in a local cloud of their own: in the soak")
    with contextmanager(serving)(tmp_path_factory.mktemp("examples") / "home") as cloud:
        followed(cloud, [*tour()[:2], *commands("examples/README.md")], tmp_path_factory.mktemp("person"))
        names = {item["name"] for item in cloud.call("GET", "/v1/clusters").body["items"]}
        assert names == {"demo", "shop", "inference", "palette"}
