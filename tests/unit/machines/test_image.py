"""The Packer template bakes what machines of the default release would install, by the product's own script."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stockyard.kubernetes_versions import DEFAULT, TESTED
from stockyard.machines import cloud_config
from stockyard.machines.sources import PUBLIC, Sources
from stockyard.providers.clouds.aws.catalog import images
from tests.unit.machines import first_boot

TEMPLATE = Path(__file__).parents[3] / "docs/image/node.pkr.json"


@pytest.fixture(scope="module")
def template() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(TEMPLATE.read_text())
    return document


def test_every_pin_is_that_of_the_closed_list(template: dict[str, Any]) -> None:
    pins = {name: variable["default"] for name, variable in template["variable"].items()}
    tested = TESTED[DEFAULT]
    assert (pins["minor"], pins["release"], pins["containerd"]) == (DEFAULT, tested.release, tested.containerd)
    assert (pins["packages_url"], pins["archive_url"]) == (PUBLIC.packages, "-")
    assert template["packer"]["required_plugins"]["amazon"]["version"].startswith("= ")


def test_the_script_gets_the_arguments_that_a_machine_gives_it(template: dict[str, Any]) -> None:
    pins = {name: variable["default"] for name, variable in template["variable"].items()}
    files, shell = (next(iter(step.values())) for step in template["build"]["provisioner"])
    for source in files["sources"]:
        assert Path(source.replace("${path.root}", str(TEMPLATE.parent))).resolve().is_file()
    (run,) = [line for line in shell["inline"] if line.startswith("sudo bash")]
    for name, value in pins.items():
        run = run.replace(f"${{var.{name}}}", value)
    assert run == f"sudo bash /tmp/image.sh {Sources().arguments(DEFAULT)}"


def test_it_starts_from_the_image_that_machines_start_from(template: dict[str, Any]) -> None:
    source = template["source"]["amazon-ebs"]["node"]
    assert source["source_ami_filter"]["owners"] == [images.CANONICAL]
    assert "24.04" in source["source_ami_filter"]["filters"]["name"]
    assert source["metadata_options"] == {"http_tokens": "required", "http_put_response_hop_limit": 1}
    assert template["build"]["sources"] == ["source.amazon-ebs.node"]


def test_shellcheck_accepts_the_script(tmp_path: Path) -> None:
    first_boot.check_script(cloud_config.start_script("bake.sh").text, tmp_path)
