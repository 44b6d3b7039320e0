"""``stockyard site`` against the fake API."""

from __future__ import annotations

import stat

PATH = "/v1/sites"
SITE = {
    "id": "sit_01",
    "name": "room",
    "state": "Ready",
    "client_id": "site-room-0a1b",
    "allowed": ["GET /version"],
    "contact_at": None,
    "version": 1,
}


def test_a_site_is_made_and_says_what_is_next(cli, api):
    api.answer("POST", PATH, SITE, status=201)
    result = cli("site", "create", "room", "--description", "our own")
    assert api.bodies("POST") == [{"name": "room", "description": "our own"}]
    assert result.stdout.splitlines()[1].split()[:2] == ["room", "Ready"]
    assert "stockyard site credentials room" in result.stderr


def test_sites_are_listed_described_and_planned(cli, api):
    api.answer("GET", PATH, {"items": [SITE], "next_page_token": None}).answer("GET", f"{PATH}/room", SITE)
    account = {"id": 4, "name": "hosts", "provider": "kubernetes", "attributes": {"via": "room"}, "version": 1}
    api.answer("GET", "/v1/cloud-accounts", {"items": [account], "next_page_token": None})
    assert cli("site", "list", "-o", "name").stdout == "room\n"
    described = cli("site", "describe", "room").stdout
    assert "GET /version" in described
    assert "4 hosts" in described
    plan = {"plan": {"creates": [{"kind": "site", "name": "room"}]}}
    api.answer("POST", f"{PATH}", plan)
    assert "+ site  room" in cli("site", "create", "room", "--dry-run").stdout


def test_credentials_are_written_for_their_owner_alone_and_not_shown(cli, api, tmp_path):
    api.answer("POST", f"{PATH}/room/credentials", {"client_id": "site-room-0a1b", "client_secret": "canary-secret"})
    for _ in range(2):
        result = cli("site", "credentials", "room", "-d", str(tmp_path / "client"))
        assert result.exit_code == 0, result.stderr
    assert "canary-secret" not in result.stdout + result.stderr
    secret = tmp_path / "client" / "client_secret"
    assert (secret.read_text(), stat.S_IMODE(secret.stat().st_mode)) == ("canary-secret", 0o600)
    assert (tmp_path / "client" / "client_id").read_text() == "site-room-0a1b"
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert cli("site", "credentials", "room", "-d", str(blocked)).exit_code == 2


def test_the_manifest_is_printed_as_it_is(cli, api):
    api.answer("GET", f"{PATH}/room/manifest", {"form": "systemd", "text": "#!/bin/sh\necho\n"})
    assert cli("site", "manifest", "room", "--form", "systemd").stdout == "#!/bin/sh\necho\n"
    assert "form=systemd" in str(api.requests[-1].url)


def test_a_site_is_deleted(cli, api):
    api.answer("GET", f"{PATH}/room", SITE).answer("DELETE", f"{PATH}/room", {"id": "op_1"}, status=202)
    assert "Site room was removed." in cli("site", "delete", "room", "--yes").stderr
