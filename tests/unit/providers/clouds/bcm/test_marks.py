"""The owner's word, our line, our script: what counts as one, and what a copied or edited device is taken for."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from local.bcm.inventory import device
from stockyard.errors import VendorRefused
from stockyard.providers.clouds.bcm import marks as own
from stockyard.providers.clouds.bcm import scripts
from stockyard.providers.clouds.bcm.devices import Device
from stockyard.providers.clouds.bcm.marks import MAY_INSTALL, Marks, marks_of, may_install, without_lines

UUID = device("node001")["uuid"]
MARKS = Marks("inst", "acme", "ncl_1", "1", UUID, "install", before="")


@pytest.mark.parametrize(
    ("notes", "is_word"),
    [
        (MAY_INSTALL, True),
        (f"rack 4, {MAY_INSTALL}.", True),
        (f"a\n{MAY_INSTALL}\nb", True),
        (f"no-{MAY_INSTALL}", False),
        (f"{MAY_INSTALL}-not", False),
        (f"x{MAY_INSTALL}", False),
        (MAY_INSTALL.upper(), False),
        ("", False),
        (f"mine\nstockyard: tenant={MAY_INSTALL}", False),
    ],
)
def test_the_owners_word_is_a_whole_word_of_the_owners_own(notes: str, is_word: bool) -> None:
    assert may_install(notes) is is_word


def test_a_line_is_read_as_it_was_written_and_goes_without_a_trace() -> None:
    notes = f"rack 4 {MAY_INSTALL}"
    for before in ("", None, "NONE"):
        written = Marks("a b/ü=", "t%20", "ncl_1", "2", UUID, "wiping", "2026-01-31T12:00:00.000Z", 3, before)
        both = notes + written.line()
        assert marks_of(both, UUID) == written
        assert without_lines(both) == notes
        assert without_lines(both + "\nadded") == notes + "\nadded", "what people add stays"


@pytest.mark.parametrize(
    "line",
    [
        MARKS.line() + MARKS.line(),
        MARKS.line().replace("stage=install", "stage=other"),
        MARKS.line().replace(" tenant=acme", ""),
        MARKS.line().replace("before=", "before=!"),
        "\nstockyard: anything",
        "\nstockyard:",
    ],
)
def test_a_line_that_is_not_one_of_ours_makes_a_device_nobodys(line: str) -> None:
    there = Device(device("node001", notes=MAY_INSTALL + line))
    assert there.marks is None
    assert "is in use" in str(there.why_not_free())


def test_a_device_that_was_copied_from_one_of_ours_is_neither_ours_nor_free() -> None:
    copied = Device(device("node002", notes=MAY_INSTALL + MARKS.line()))
    assert copied.marks is None
    assert "copied" in str(copied.why_not_free())
    assert copied.why_not_ours(MARKS) == "it does not carry the marks of this claim"
    script = scripts.script("ncl_1", UUID, "", "", "true")
    assert "copied" in str(Device(device("node002", notes=MAY_INSTALL, finalize=script)).why_not_free())


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"childType": "HeadNode"}, "no compute node"),
        ({"childType": "physicalnode"}, "no compute node"),
        ({"childType": None}, "no compute node"),
        ({"baseType": "Node"}, "no compute node"),
        ({"roles": [{"childType": "HeadNodeRole"}]}, "no compute node"),
        ({"roles": ["FailoverRole"]}, "no compute node"),
        ({"roles": "all"}, "no compute node"),
        ({"roles": [3]}, "no compute node"),
        ({"uuid": "all"}, "no compute node"),
        ({"hostname": "all of them"}, "no compute node"),
        ({"hostname": None}, "no compute node"),
        ({"notes": None}, MAY_INSTALL),
        ({"nextInstallMode": "NOSYNC"}, "NOSYNC"),
        ({"nextInstallMode": 3}, "unreadable"),
        ({"finalize": ["x"]}, "finalize"),
    ],
)
def test_what_is_no_free_compute_node_is_never_taken(changes: dict[str, Any], reason: str) -> None:
    there = Device({**device("node001", notes=MAY_INSTALL), **changes})
    assert reason in str(there.why_not_free())
    marked = Device({**device("node001", notes=MAY_INSTALL + MARKS.line()), **changes})
    if reason in ("no compute node", MAY_INSTALL):
        assert reason in str(marked.why_not_ours(MARKS))


def test_a_device_without_a_mode_that_we_know_is_refused() -> None:
    entity = device("node001", notes=MAY_INSTALL)
    del entity["nextInstallMode"]
    with pytest.raises(VendorRefused, match="nextInstallMode and nextBootInstallMode"):
        Device(entity).why_not_free()
    assert Device(device("node001", notes=MAY_INSTALL, mode_field="nextBootInstallMode")).why_not_free() is None


def run(script: str, folder: Path, address: str) -> subprocess.CompletedProcess[str]:
    """Run a finalize script as an installer would, on a machine with that network address."""
    net = folder / "net" / "eth0"
    net.mkdir(parents=True, exist_ok=True)
    (net / "address").write_text(f"{address}\n")
    path = folder / "finalize"
    path.write_text(script)
    environment = {
        "PATH": "/usr/bin:/bin",
        "STOCKYARD_ROOT": str(folder / "root"),
        "STOCKYARD_NET": str(folder / "net"),
        "LOG": str(folder / "log"),
        "TMPDIR": str(folder),
    }
    return subprocess.run(["bash", str(path)], env=environment, capture_output=True, text=True, check=False)


def test_the_script_runs_the_owners_own_first_and_ours_on_that_machine_alone(tmp_path: Path) -> None:
    before = "#!/bin/sh\necho owner >> $LOG\n"
    script = scripts.script("ncl_1", UUID, "02:00:00:00:00:01", before, 'echo "ours in $root" >> "$LOG"')
    assert (scripts.owner_of(script), scripts.before_of(script)) == (("ncl_1", UUID), before)
    assert scripts.owner_of(f"#!/bin/bash\n{script}") is None, "edited: not as we wrote it"
    assert scripts.is_own(f"#!/bin/bash\n{script}")
    assert "no new root" in run(script, tmp_path, "02:00:00:00:00:01").stderr
    (tmp_path / "log").unlink()
    (tmp_path / "root" / "etc").mkdir(parents=True)
    assert run(script, tmp_path, "02:00:00:00:00:01").returncode == 0
    assert (tmp_path / "log").read_text() == f"owner\nours in {tmp_path / 'root'}\n"
    assert run(script, tmp_path, "02:00:00:00:00:99").returncode == 0
    assert (tmp_path / "log").read_text().splitlines()[2:] == ["owner"], "a copied device"
    failing = scripts.script("ncl_1", UUID, "", "#!/bin/sh\nexit 3\n", 'echo no >> "$LOG"')
    assert run(failing, tmp_path, "").returncode == 3
    assert "no" not in (tmp_path / "log").read_text().split()


@pytest.mark.parametrize("before", ["", None, "echo own", "#!/bin/sh\nEND_OF_BEFORE\necho 'ü'\n"])
def test_the_script_gives_back_what_was_there(before: str | None) -> None:
    assert scripts.before_of(scripts.script("ncl_1", UUID, "", before, "true")) == before
    assert scripts.before_of(before) == before
    assert own.texts({"finalize": before}, "finalize") == (before or "")


def test_an_address_that_is_none_is_no_word_of_the_script() -> None:
    for mac in ('$(touch /tmp/x)"', "02:00", "02:00:00:00:00:01\n"):
        assert "grep" not in scripts.script("ncl_1", UUID, mac, "", "true")
