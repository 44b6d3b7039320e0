"""``stockyard os-image`` against the fake API."""

from __future__ import annotations

PATH = "/v1/os-images"
IMAGE = {
    "id": "osi_01",
    "name": "noble",
    "url": "https://images.example.test/noble.qcow2",
    "format": "qcow2",
    "version": 3,
}


def test_an_image_is_entered_and_listed(cli, api):
    api.answer("POST", PATH, IMAGE, status=201).answer("GET", PATH, {"items": [IMAGE], "next_page_token": None})
    result = cli("os-image", "create", "noble", "--url", IMAGE["url"], "--checksum", "a" * 64, "--format", "qcow2")
    assert api.bodies("POST") == [{"name": "noble", "url": IMAGE["url"], "checksum": "a" * 64, "format": "qcow2"}]
    assert result.stdout.splitlines()[1].split()[:3] == ["noble", IMAGE["url"], "qcow2"]
    assert cli("os-image", "list", "-o", "name").stdout == "noble\n"


def test_an_image_is_planned(cli, api):
    api.answer("POST", PATH, {"plan": {"creates": [{"kind": "os-image", "name": "noble"}]}})
    assert "+ os image  noble" in cli("os-image", "create", "noble", "--url", IMAGE["url"], "--dry-run").stdout


def test_an_image_is_changed_by_the_version_that_was_read(cli, api):
    api.answer("GET", f"{PATH}/noble", IMAGE, ETag='"3"').answer("PATCH", f"{PATH}/osi_01", IMAGE)
    assert cli("os-image", "update", "noble", "--description", "new").exit_code == 0
    assert api.bodies("PATCH") == [{"description": "new"}]
    assert api.requests[-1].headers["If-Match"] == '"3"'
    assert cli("os-image", "update", "noble").exit_code == 2


def test_an_image_is_deleted_by_its_name_or_by_a_document(cli, api, tmp_path):
    operation = {
        "id": "op_1",
        "kind": "delete_os_image",
        "status": "succeeded",
        "subject": "osi_01",
        "phases": [],
        "version": 1,
    }
    api.answer("GET", f"{PATH}/noble", IMAGE).answer("DELETE", f"{PATH}/noble", operation, status=202)
    assert "was removed" in cli("os-image", "delete", "noble", "--yes").stderr
    file = tmp_path / "image.yaml"
    file.write_text("apiVersion: stockyard/v1\nkind: OSImage\nmetadata: {name: noble}\nspec: {url: 'https://a/b'}\n")
    assert "os-image noble deleted" in cli("delete", "-f", str(file), "--yes").stdout
