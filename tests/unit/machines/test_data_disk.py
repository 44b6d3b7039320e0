"""Opening of a machine's encrypted disk: with a key that is in the Vault and nowhere else, whenever it died before."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from local.vault.server import Vault, VaultServer, ask
from stockyard.domain.values.redaction import redact
from stockyard.machines import cloud_config, control_plane, data_disk
from stockyard.machines.data_disk import DiskKey
from tests.harness.worlds import vaults
from tests.unit.machines import first_boot
from tests.unit.machines.encrypted import CLIENT_ID, KEY, ON_A_FILE, PROGRAMS, Machine, key_of, new_machine
from tests.unit.machines.first_boot import VALUES


@pytest.fixture(scope="module", params=vaults.KINDS)
def either_vault(request: pytest.FixtureRequest) -> Iterator[Vault]:
    with vaults.running(request.param) as vault:
        yield vault


@pytest.fixture
def vault() -> Iterator[VaultServer]:
    server = VaultServer()
    yield server
    server.close()


@pytest.fixture
def machine(tmp_path: Path, vault: VaultServer) -> Machine:
    return new_machine(tmp_path / "machine", vault)


@pytest.fixture
def disk_program(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The program as a module, to let it die in the middle."""
    for name, value in machine.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "stockyard_machine", raising=False)
    specification = importlib.util.spec_from_file_location("stockyard_disk_extracted", machine.program)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    sys.modules.pop("stockyard_machine")
    patiently = partial(module.machine.patiently, pause=lambda _: None)
    monkeypatch.setattr(module.machine, "patiently", patiently)
    return module


def configuration(machine: Machine) -> dict[str, str]:
    return json.loads((machine.state / "vault.json").read_text())


class Died(BaseException):
    """The machine lost its power."""


def dies(*_: Any, **__: Any) -> None:
    raise Died


# --- a first boot and those after it ---------------------------------------------------------------------------------


def test_the_disk_is_encrypted_with_a_key_that_is_in_the_vault_alone(either_vault: Vault, tmp_path: Path) -> None:
    ask(either_vault, "DELETE", f"secret/metadata/stockyard/{CLIENT_ID}")
    machine = new_machine(tmp_path / "machine", either_vault)
    results = [machine.run("unwrap"), machine.run("open", str(machine.disk))]
    assert [done.returncode for done in results] == [0, 0], results
    key = key_of(either_vault)
    assert len(key) == 88, "64 bytes, as base64"
    assert machine.opens_with(key)
    assert machine.mapped.exists()
    output = "".join(done.stdout + done.stderr for done in results)
    written = {path: path.read_bytes().decode(errors="replace") for path in machine.root.rglob("*") if path.is_file()}
    assert [path for path, text in written.items() if key in text] == []
    assert key not in output
    (format_call,) = machine.calls("luksFormat")
    assert "--type luks2" in format_call
    assert "--key-file -" in format_call
    secret_id = machine.state / "vault-secret-id"
    assert stat.S_IMODE(secret_id.stat().st_mode) == 0o600
    assert secret_id.read_text().strip() not in output
    assert [path for path, text in written.items() if secret_id.read_text().strip() in text] == [secret_id]


def test_a_disk_that_is_encrypted_is_opened_and_not_formatted_again(either_vault: Vault, tmp_path: Path) -> None:
    machine = new_machine(tmp_path / "machine", either_vault)
    machine.boot()
    before, key = machine.disk.read_text(), key_of(either_vault)
    machine.boot()
    assert len(machine.calls("open")) == 1, "it is open"
    machine.mapped.unlink()
    assert machine.run("open").returncode == 0, "a reboot"
    machine.mapped.unlink()
    machine.boot()
    assert machine.disk.read_text() == before
    assert len(machine.calls("luksFormat")) == 1
    assert key_of(either_vault) == key


def test_another_machine_goes_on_with_the_disk_by_a_secret_id_of_its_own(vault: VaultServer, tmp_path: Path) -> None:
    first = new_machine(tmp_path / "first", vault)
    first.boot()
    second = new_machine(tmp_path / "second", vault)
    shutil.copy(first.disk, second.disk)
    second.boot()
    assert second.calls("luksFormat") == []
    secret_ids = {(each.state / "vault-secret-id").read_text() for each in (first, second)}
    assert len(secret_ids) == 2


def test_a_reboot_waits_for_a_vault_that_is_away(machine: Machine, vault: VaultServer, disk_program: Any) -> None:
    machine.boot()
    machine.mapped.unlink()
    vault.close()
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 6:
            vault.open()
            vault.vault.failing = [503, 429, 400]

    disk_program.open_again(configuration(machine), pause)
    assert machine.mapped.exists()
    assert len(pauses) == 9
    assert pauses[:2] == [5, 10]
    assert max(pauses) == 60


def test_a_reboot_never_formats(machine: Machine, disk_program: Any, capfd: pytest.CaptureFixture[str]) -> None:
    machine.boot()
    machine.mapped.unlink()
    machine.disk.write_text("")
    with pytest.raises(Died):
        disk_program.open_again(configuration(machine), dies)
    assert "lost its header" in capfd.readouterr().err
    assert machine.disk.read_text() == ""


# --- a machine that died ---------------------------------------------------------------------------------------------


def test_a_machine_that_died_after_the_unwrapping_says_that_it_has_to_be_replaced(
    machine: Machine, disk_program: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(disk_program, "keep", dies)
        with pytest.raises(Died):
            disk_program.unwrap(configuration(machine))
    done = machine.run("unwrap")
    assert done.returncode == 1
    assert "unwrapped before, by an earlier boot or by somebody else. Replace this machine" in done.stderr


def test_a_machine_that_died_after_it_wrote_the_key_uses_that_key(
    machine: Machine, vault: VaultServer, disk_program: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk_program.unwrap(configuration(machine))
    with monkeypatch.context() as patch:
        patch.setattr(disk_program, "with_key", dies)
        with pytest.raises(Died):
            disk_program.open_disk(configuration(machine), str(machine.disk), may_format=True)
    key = key_of(vault)
    machine.boot()
    assert key_of(vault) == key
    assert machine.opens_with(key)


def test_a_machine_that_died_after_the_format_opens_what_it_formatted(
    machine: Machine, disk_program: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk_program.unwrap(configuration(machine))
    with monkeypatch.context() as patch:
        patch.setattr(disk_program, "keep", dies)
        with pytest.raises(Died):
            disk_program.open_disk(configuration(machine), str(machine.disk), may_format=True)
    before = machine.disk.read_text()
    machine.boot()
    assert machine.disk.read_text() == before
    assert len(machine.calls("luksFormat")) == 1


def test_a_format_that_was_cut_off_is_done_again(machine: Machine, vault: VaultServer) -> None:
    machine.disk.write_text("LUKS none")
    machine.boot()
    assert machine.opens_with(key_of(vault))


def test_two_that_make_a_key_at_once_end_with_the_same(
    machine: Machine, vault: VaultServer, disk_program: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one reads and writes between this one's reading and writing."""
    disk_program.unwrap(configuration(machine))
    call: Callable[..., Any] = disk_program.call
    their_keys: list[str] = []

    def call_after_another(vault_told: Any, path: str, token: str, body: Any = None) -> Any:
        if body is not None and path == KEY and not their_keys:
            their_keys.append("")
            their_keys[0] = disk_program.disk_key(vault_told, may_make=True)
        return call(vault_told, path, token, body)

    monkeypatch.setattr(disk_program, "call", call_after_another)
    assert disk_program.disk_key(configuration(machine), may_make=True) == their_keys[0] == key_of(vault)


# --- what stops a boot -----------------------------------------------------------------------------------------------


def test_a_secret_id_that_somebody_else_has_unwrapped_stops_the_boot(either_vault: Vault, tmp_path: Path) -> None:
    machine = new_machine(tmp_path / "machine", either_vault)
    token = configuration(machine)["wrapped_secret_id"]
    stolen = ask(either_vault, "POST", "sys/wrapping/unwrap", {}, token=token)[1]["data"]["secret_id"]
    done = machine.run("unwrap")
    assert done.returncode == 1
    assert "unwrapped before" in redact(done.stderr), "the boot report tells it"
    assert token not in done.stderr
    assert stolen not in done.stderr
    assert not (machine.state / "vault-secret-id").exists()


def test_a_wrapped_secret_id_is_asked_for_again_while_the_vault_cannot_answer(
    machine: Machine, vault: VaultServer, disk_program: Any
) -> None:
    vault.vault.failing = [503, 500, 429]
    disk_program.unwrap(configuration(machine))
    assert (machine.state / "vault-secret-id").exists()
    unwraps = [path for _, path in vault.vault.requests if path == "/v1/sys/wrapping/unwrap"]
    assert len(unwraps) == 4


def test_a_vault_that_is_away_at_the_first_boot_is_told(machine: Machine, vault: VaultServer) -> None:
    assert machine.run("unwrap").returncode == 0
    vault.close()
    try:
        done = machine.run("open", str(machine.disk))
        assert done.returncode == 1
        assert "Connection refused" in done.stderr
        assert "Traceback" not in done.stderr
    finally:
        vault.open()
    machine.boot()


def test_a_disk_with_anything_else_is_left_as_it_is(machine: Machine, vault: VaultServer) -> None:
    machine.disk.write_text("ext4 and someone's data")
    assert machine.run("unwrap").returncode == 0
    done = machine.run("open", str(machine.disk))
    assert done.returncode == 1
    assert "it is left as it is" in done.stderr
    assert machine.disk.read_text() == "ext4 and someone's data"
    assert ask(vault, "GET", KEY)[0] == 404, "no key was made for it"


@pytest.mark.parametrize("lost", [f"secret/metadata/stockyard/{CLIENT_ID}", KEY])
def test_for_an_encrypted_disk_no_new_key_is_made(either_vault: Vault, tmp_path: Path, lost: str) -> None:
    machine = new_machine(tmp_path / "machine", either_vault)
    machine.boot()
    before = machine.disk.read_text()
    machine.mapped.unlink()
    ask(either_vault, "DELETE", lost)
    done = machine.run("open", str(machine.disk))
    assert done.returncode == 1
    assert "has no key" in done.stderr
    assert machine.disk.read_text() == before
    assert ask(either_vault, "GET", KEY)[0] == 404
    ask(either_vault, "DELETE", f"secret/metadata/stockyard/{CLIENT_ID}")


def test_a_machine_whose_secret_id_was_taken_away_is_told_so(machine: Machine, vault: VaultServer) -> None:
    machine.boot()
    machine.mapped.unlink()
    vault.vault.secret_ids.clear()
    done = machine.run("open", str(machine.disk))
    assert done.returncode == 1
    assert "refuses this machine's login (400)" in done.stderr


def test_a_role_without_the_policy_is_told_so(machine: Machine, vault: VaultServer) -> None:
    assert machine.run("unwrap").returncode == 0
    ask(vault, "POST", "auth/approle/role/stockyard", {"token_policies": "default"})
    done = machine.run("open", str(machine.disk))
    assert done.returncode == 1
    assert "refuses this machine the key of its disk (403)" in done.stderr


def test_tokens_do_not_follow_a_redirection(machine: Machine, disk_program: Any) -> None:
    paths: list[str] = []

    class Elsewhere(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_response(302)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Elsewhere)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        address = f"http://127.0.0.1:{server.server_address[1]}"
        assert disk_program.call({"address": address}, "secret", "hvs.token") == (302, {})
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
    assert paths == ["/v1/secret"]


# --- what a machine is told ------------------------------------------------------------------------------------------


def test_what_a_machine_is_told_is_for_root_alone_and_in_no_repr() -> None:
    key = DiskKey("https://vault.example.test", "role-1", "hvs.wrapped", CLIENT_ID)
    files = data_disk.files(key)
    assert "hvs.wrapped" not in repr(key) + repr(files) + repr(
        control_plane.ControlPlaneMachine(**VALUES, disk_key=key).first_boot()
    )
    assert files[data_disk.CONFIG_PATH].mode == "0600"
    assert json.loads(files[data_disk.CONFIG_PATH].text)["wrapped_secret_id"] == "hvs.wrapped"
    with_key = control_plane.ControlPlaneMachine(**VALUES, disk_key=key).first_boot().files
    assert set(with_key) - set(control_plane.ControlPlaneMachine(**VALUES).first_boot().files) == set(files)
    unit = files[data_disk.UNIT_PATH].text
    assert f"ExecStart=/usr/bin/python3 {data_disk.PROGRAM_PATH} open\n" in unit
    assert "TimeoutStartSec=infinity" in unit


def test_the_longest_values_fit() -> None:
    """Addresses have 508 characters, role ids 200, and a Vault's tokens about 100."""
    values = {
        **VALUES,
        "api_url": f"https://{first_boot.noise(253)}",
        "client_id": first_boot.noise(46),
        "issuer": f"https://{first_boot.noise(253)}/realms/{first_boot.noise(255)}",
        "tenant": first_boot.noise(63),
        "creator": first_boot.noise(128),
        "volume_tags": None,
    }
    address = f"https://{first_boot.noise(500)}"
    key = DiskKey(address, first_boot.noise(200), first_boot.noise(128), values["client_id"])
    boot = control_plane.ControlPlaneMachine(**values, disk_key=key, overlay=True).first_boot()
    assert len(boot.cloud_config()) <= cloud_config.LIMIT
    assert boot.script()


# --- cryptsetup itself -----------------------------------------------------------------------------------------------


@pytest.mark.skipif(not all(PROGRAMS.values()), reason="cryptsetup and wipefs are not installed")
def test_the_key_of_the_vault_opens_what_cryptsetup_has_formatted(machine: Machine, vault: VaultServer) -> None:
    machine.environment["REAL"] = str(PROGRAMS["cryptsetup"])
    machine.environment["PATH"] += ":/usr/sbin:/sbin"
    (machine.root / "bin" / "wipefs").unlink()
    (machine.root / "bin" / "cryptsetup").write_text(ON_A_FILE)
    with machine.disk.open("wb") as file:
        file.truncate(32 * 1024 * 1024)
    machine.boot()
    cryptsetup = [str(PROGRAMS["cryptsetup"]), "open", "--test-passphrase", "--key-file", "-", str(machine.disk)]
    for key, opens in ((key_of(vault), True), ("another", False)):
        done = subprocess.run(cryptsetup, input=key.encode(), capture_output=True, check=False)
        assert (done.returncode == 0) is opens, done.stderr
    header = subprocess.run(
        [str(PROGRAMS["cryptsetup"]), "luksDump", str(machine.disk)], capture_output=True, text=True, check=True
    ).stdout
    assert "Version:       \t2" in header
    assert "aes-xts-plain64" in header
    with machine.disk.open("rb") as file:
        before = hashlib.file_digest(file, "sha256").digest()
    for arguments in (("open", str(machine.disk)), ("open",)):
        machine.mapped.unlink()
        (machine.state / "data-disk").write_text(str(machine.disk))  # a file is not below /dev/disk
        assert machine.run(*arguments).returncode == 0
    with machine.disk.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").digest() == before, "it was formatted again"
    subprocess.run([str(PROGRAMS["cryptsetup"]), "erase", "--batch-mode", str(machine.disk)], check=True)
    machine.mapped.unlink()
    assert machine.run("open", str(machine.disk)).returncode == 0, "a header without a key is as good as none"
