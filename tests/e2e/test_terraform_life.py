"""A template in the local cloud with a real OpenTofu: its machine joins its cluster, is compared and destroyed.

The template makes a machine of the simulated Cudo over HTTP, as a template for any vendor would."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from local.opentofu.real.build import TOFU
from stockyard.providers.clouds.cudo.client import Cudo
from stockyard_client.cli.app import app
from stockyard_client.cli.context import Context

if TYPE_CHECKING:
    from local.testing.serving import Served

pytestmark = pytest.mark.skipif(bool(TOFU.missing()), reason=TOFU.missing() or "built")
ASK = """
import json, os, time, urllib.error, urllib.request
print("printed", time.time(), flush=True)
time.sleep(3)
headers = {"Authorization": "Bearer " + os.environ["KEY"], "Content-Type": "application/json"}
body = os.environ["BODY"].encode() if "BODY" in os.environ else None
request = urllib.request.Request(os.environ["URL"], body, headers, method="POST")
try:
    print(urllib.request.urlopen(request).status)
except urllib.error.HTTPError as error:
    raise SystemExit(error.read().decode())
"""
TEMPLATE = """
variable "vcluster" { type = any }
locals {
  id      = "tf-${var.vcluster.name}"
  machine = {
    vmId = local.id, dataCenterId = "us-dallas-1", machineType = "MACHINE_TYPE", vcpus = 4, memoryGib = 8
    bootDiskImageId = "ubuntu-2404", bootDiskSizeGib = 50, startScript = var.vcluster.userData
    gpus = 0, storageDiskIds = [], customSshKeys = [], metadata = {}
    nics = [{ assignPublicIp = true, securityGroupIds = [] }], sshKeySource = "SSH_KEY_SOURCE_NONE"
  }
}
resource "terraform_data" "machine" {
  input            = { url = "PROJECT/vms/${local.id}/terminate", key = "API_KEY" }
  triggers_replace = [var.vcluster.requirements["instance-type"]]
  provisioner "local-exec" {
    interpreter = ["python3", "-c"]
    command     = SCRIPT
    environment = { URL = "PROJECT/vm", KEY = "API_KEY", BODY = jsonencode(local.machine) }
  }
  provisioner "local-exec" {
    when        = destroy
    interpreter = ["python3", "-c"]
    command     = SCRIPT
    environment = { URL = self.input.url, KEY = self.input.key }
  }
}
output "id" { value = local.id }
output "password" {
  value     = "canary-output-${var.vcluster.name}"
  sensitive = true
}
"""


def template(served: Served) -> str:
    environment = served.environment
    values = {
        "PROJECT": f"{environment['CUDO_URL']}/v1/projects/{environment['CUDO_PROJECT_ID']}",
        "API_KEY": environment["CUDO_API_KEY"],
        "MACHINE_TYPE": "intel-broadwell",
        "SCRIPT": json.dumps(ASK.strip()).replace("%", "%%"),
    }
    text = TEMPLATE
    for name, value in values.items():
        text = text.replace(name, value)
    return text


def printed(log: dict[str, Any]) -> float | None:
    """Moment at which the template's program printed its line; None while the log does not show the line."""
    lines = [
        line["text"] for line in log.get("items", ()) if "printed" in line["text"] and "import" not in line["text"]
    ]
    return float(lines[0].rpartition(" ")[2]) if lines else None


@pytest.fixture(scope="module")
def cluster(served: Served, body: Callable[..., dict[str, Any]]) -> str:
    answer = served.call("POST", "/v1/clusters", body(name="templates"))
    assert served.operation(answer.body["operation_id"])["status"] == "succeeded"
    return "templates"


@pytest.mark.timeout(600)
def test_a_template_becomes_a_node_and_nothing_is_left_of_it(
    served: Served, cluster: str, record_property: Callable[[str, object], None]
) -> None:
    machine_type = {"name": "small", "resources": {"cpu": "4", "memory": "8Gi"}, "properties": {"instance-type": "s"}}
    block = {"runner": {"cloudAccount": 1}, "nodeTemplate": {"inline": template(served)}, "nodeTypes": [machine_type]}
    spec = {"name": "tofu", "kind": "terraform", "spec": block, "price_per_cost_unit": 0.001}
    assert served.call("POST", "/v1/node-providers", spec).status == 201
    options = ("--provider", "tofu", "--dry-run", "--refresh", "--tofu", str(TOFU.path), "-o", "json")
    settings = {**os.environ, **served.environment}
    answer = CliRunner().invoke(app, ["claim", "create", "--cluster", cluster, *options], obj=Context(settings))
    assert answer.exit_code == 0, answer.output
    changes = [{"action": "create", "address": "terraform_data.machine"}]
    assert json.loads(answer.stdout)["tofu"] == {"changes": changes, "faults": []}
    claim = served.call("POST", "/v1/node-claims", {"name": "made", "cluster": cluster, "provider": "tofu"}).body
    path = f"/v1/node-claims/{claim['id']}"
    log_path = f"/v1/operations/{claim['operation_id']}/log?page_size=200"
    printed_at = served.wait("a line of the run", lambda: printed(served.call("GET", log_path).body), 400)
    delay = time.time() - printed_at
    record_property("figure:log_line_seconds", round(delay, 1))
    assert delay < 5
    assert served.call("GET", path).body["phase"] not in ("Available", "Failed"), "the run goes on"
    served.wait("the node", lambda: served.call("GET", path).body["phase"] in ("Available", "Failed"), 400)
    node = served.call("GET", path).body
    operation = served.call("GET", f"/v1/operations/{claim['operation_id'] or node['operation_id']}").body
    log = served.call("GET", f"/v1/operations/{operation['id']}/log?page_size=200").body
    assert node["phase"] == "Available", "\n".join(line["text"] for line in log["items"])
    text = json.dumps(log)
    assert "Apply complete!" in text
    assert "canary-output" not in text
    environment = served.environment
    cudo = Cudo(environment["CUDO_API_KEY"], environment["CUDO_PROJECT_ID"], base_url=environment["CUDO_URL"])
    assert [vm.id for vm in cudo.vms()] == ["tf-made"]
    deletion = served.call("DELETE", path)
    assert served.operation(deletion.body["id"])["status"] == "succeeded"
    served.wait("the end of the machine", lambda: not cudo.vms(), 60)
    cudo.close()
    objects = served.aws("s3").list_objects_v2(Bucket="stockyard-dev-111111111111-us-east-1", Prefix="states/")
    assert objects.get("KeyCount", 0) == 0
