"""The first boot's configuration of containerd, by the containerd and the ``nvidia-ctk`` that AWS's image with NVIDIA's
driver has, as containerd itself reads it afterwards."""

from __future__ import annotations

import subprocess
import tomllib
from typing import Any

import pytest

from local.kubernetes.real import container_runtime
from tests.unit.machines.played_machine import Machine

RUNTIME, IMAGES = "io.containerd.cri.v1.runtime", "io.containerd.cri.v1.images"
CONFIG = '"$ROOT/etc/containerd/config.toml"'
DROP_IN = '"$ROOT/etc/containerd/conf.d/99-nvidia.toml"'
COMMANDS = {
    container_runtime.CONTAINERD: f'exec {{program}} --config {CONFIG} "$@"',
    container_runtime.TOOLKIT: f'exec {{program}} "$@" --config {CONFIG} --drop-in-config {DROP_IN}',
}
"""The real programs on a machine in a folder: each is told where that machine has its files."""


def install(machine: Machine, name: str) -> None:
    command = COMMANDS[name].format(program=container_runtime.FOLDER / name)
    # Only a configuration that is there can be named to containerd.
    default = f'[ "$*" = "config default" ] && exec {container_runtime.FOLDER / name} "$@"\n'
    path = machine.root / "bin" / name
    path.write_text(f"#!/bin/bash\n{default if name == container_runtime.CONTAINERD else ''}{command}\n")
    path.chmod(0o755)


def dumped(machine: Machine) -> dict[str, Any]:
    """The plugins of the configuration that containerd starts with, drop-in files included."""
    program, config = container_runtime.FOLDER / container_runtime.CONTAINERD, machine.root / "etc/containerd"
    command = [program, "--config", config / "config.toml", "config", "dump"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    plugins: dict[str, Any] = tomllib.loads(done.stdout)["plugins"]
    return plugins


@pytest.mark.parametrize("played_machine", ["node.sh"], indirect=True)
@pytest.mark.parametrize("has_driver", [True, False])
def test_containerd_reads_what_the_first_boot_configures(played_machine: Machine, has_driver: bool) -> None:
    if reason := container_runtime.missing():
        pytest.skip(reason)
    for name in (container_runtime.CONTAINERD, *([container_runtime.TOOLKIT] if has_driver else [])):
        install(played_machine, name)
    assert played_machine.boot(registry="mirror.example.test") == 0
    plugins = dumped(played_machine)
    runtimes, default = (plugins[RUNTIME]["containerd"][name] for name in ("runtimes", "default_runtime_name"))
    assert default == ("nvidia" if has_driver else "runc")
    assert sorted(runtimes) == (["nvidia", "runc"] if has_driver else ["runc"])
    assert all(runtime["options"]["SystemdCgroup"] for runtime in runtimes.values()), "as the kubelet has it"
    assert "/etc/containerd/certs.d" in plugins[IMAGES]["registry"]["config_path"].split(":")
    if has_driver:
        assert runtimes["nvidia"]["options"]["BinaryName"] == "/usr/bin/nvidia-container-runtime"
        # A boot that was cut off begins again.
        (played_machine.root / "etc/containerd/prepared").unlink()
        assert played_machine.boot(registry="mirror.example.test") == 0
        assert dumped(played_machine) == plugins
