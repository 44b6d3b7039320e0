"""The script of a renewal renews certificates that end soon, restarts what uses them and reports."""

from __future__ import annotations

import pytest

from tests.unit.machines.played_machine import Machine

RENEWED = ["kubeadm certs", *("crictl ps", "crictl stop") * 4, "python3 ready"]
RENEWING = ["kubeadm certs renew", "ps --quiet", "stop --timeout", "python3 ready"]


def renewal(machine: Machine) -> list[str]:
    """Return the commands that have been run, without options, and forget them."""
    lines = [
        line.replace("--runtime-endpoint unix:///run/containerd/containerd.sock ", "") for line in machine.lines("ran")
    ]
    (machine.root / "ran").write_text("")
    return [" ".join(line.split()[:2]) for line in lines if not line.startswith("openssl")]


@pytest.mark.parametrize("played_machine", ["control_plane.sh"], indirect=True)
def test_certificates_are_renewed_and_reported_once_when_they_end_soon(played_machine: Machine) -> None:
    (played_machine.root / "etc/stockyard/client.json").touch()
    assert played_machine.run("renew.sh") == 0
    assert renewal(played_machine) == []
    (played_machine.root / "ending").touch()
    assert played_machine.run("renew.sh") == 0
    assert renewal(played_machine) == RENEWED
    assert played_machine.run("renew.sh") == 0
    assert renewal(played_machine) == []


@pytest.mark.parametrize("played_machine", ["control_plane.sh"], indirect=True)
@pytest.mark.parametrize("command", RENEWING)
def test_a_renewal_that_was_cut_off_is_done_again_the_next_day(played_machine: Machine, command: str) -> None:
    (played_machine.root / "etc/stockyard/client.json").touch()
    (played_machine.root / "ending").touch()
    assert played_machine.run("renew.sh", fails=command) not in (0, None)
    assert "python3 ready" not in renewal(played_machine)
    assert played_machine.run("renew.sh") == 0
    assert renewal(played_machine) == RENEWED
    assert played_machine.run("renew.sh") == 0
    assert renewal(played_machine) == []


@pytest.mark.parametrize("played_machine", ["control_plane_join.sh"], indirect=True)
def test_a_member_renews_its_certificates_and_reports_its_kubeconfig(played_machine: Machine) -> None:
    (played_machine.root / "ending").touch()
    assert played_machine.run("renew.sh") == 0
    assert renewal(played_machine) == [*RENEWED[:-1], "python3 renewal"]
