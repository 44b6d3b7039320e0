"""Requests about custom resources, and what an API server says to each: the same for a simulated and a real one.

A case is a name, method, path, body, the status of the answer, and what its message has; or of what it stores.
"""

from __future__ import annotations

from typing import Any

VM, VMS = "VirtualMachine", "/apis/kubevirt.io/v1/namespaces/web/virtualmachines"
BMH, HOSTS = "BareMetalHost", "/apis/metal3.io/v1alpha1/namespaces/web/baremetalhosts"
APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"
AS_US = "?fieldManager=stockyard&force=true"


def vm(name: str, domain: Any = None, template: Any = None, **spec: Any) -> dict[str, Any]:
    """A virtual machine that a cluster takes, but for what is said."""
    inner = {"domain": {"devices": {}, **(domain or {})}, **(template or {})}
    about = {"apiVersion": "kubevirt.io/v1", "kind": VM, "metadata": {"name": name, "namespace": "web"}}
    return {**about, "spec": {"runStrategy": "Always", "template": {"spec": inner}, **spec}}


def host(name: str, **spec: Any) -> dict[str, Any]:
    """A bare metal host that a cluster takes, but for what is said."""
    about = {"apiVersion": "metal3.io/v1alpha1", "kind": BMH, "metadata": {"name": name, "namespace": "web"}}
    return {**about, "spec": {"online": True, **spec}}


def named(name: str = "b", **meta: Any) -> dict[str, Any]:
    """A virtual machine with such metadata."""
    return {**vm(name), "metadata": {"name": name, "namespace": "web", **meta}}


TYPED = "failed to create typed patch object (web/b; kubevirt.io/v1, Kind=VirtualMachine): "
GRACE, TEXT = "terminationGracePeriodSeconds", "&value.valueUnstructured"
_NONE, _INNER = "field not declared in schema", ".spec.template.spec"
NOT_APPLIED: list[tuple[dict[str, Any], str]] = [
    (vm("b", foo=1), f".spec.foo: {_NONE}"),
    (vm("b") | {"foo": 1}, f".foo: {_NONE}"),
    (named(foo=1), f".metadata.foo: {_NONE}"),
    (vm("b", template={"volumes": [{"name": "v", "foo": 1}]}), f"{_INNER}.volumes[0].foo: {_NONE}"),
    (named(labels={"a": 1}), f".metadata.labels.a: expected string, got {TEXT}{{Value:1}}"),
    (vm("b", running="yes"), ".spec.running: expected boolean, got &{yes}"),
    (vm("b", runStrategy=7), f".spec.runStrategy: expected string, got {TEXT}{{Value:7}}"),
    (vm("b") | {"spec": "x"}, ".spec: expected map, got &{x}"),
    (vm("b") | {"spec": {"template": []}}, ".spec.template: expected map, got &{[]}"),
    (vm("b", template={"volumes": {"a": 1}}), f"{_INNER}.volumes: expected list, got &{{map[a:1]}}"),
    (vm("b", template={GRACE: "5"}), f"{_INNER}.{GRACE}: expected numeric (int or float), got string"),
]
"""What server-side apply refuses by HTTP 500, before it looks at values."""
_DOMAIN, _RULES = "spec.template.spec.domain", "Invalid <nil>"
_VOLUMES = {"hardwareRAIDVolumes": [{"level": "1", "numberOfPhysicalDisks": 0}]}
INVALID: list[tuple[dict[str, Any], set[str]]] = [
    (vm("b") | {"spec": {"runStrategy": "Always"}}, {"Required spec.template", _RULES}),
    ({key: value for key, value in vm("b").items() if key != "spec"}, {"Required spec", _RULES}),
    (vm("b", {"devices": {"disks": [{"disk": {}}]}}), {f"Required {_DOMAIN}.devices.disks[0].name", _RULES}),
    (vm("b", {"memory": {"guest": "lots"}}), {f"Invalid {_DOMAIN}.memory.guest"}),
    (vm("b", {"resources": {"requests": {"cpu": "lots"}}}), {f"Invalid {_DOMAIN}.resources.requests.cpu"}),
    (vm("b", running=None), {"TypeInvalid spec.running", _RULES}),
    (vm("b", {"cpu": {"sockets": 2**40}}), {_RULES}),
    (named(labels={"a": "b c"}), {"Invalid metadata.labels"}),
    (named("B_"), {"Invalid metadata.name"}),
    (host("b", bootMode="fast"), {"NotSupported spec.bootMode"}),
    (host("b", bootMACAddress="zz"), {"Invalid spec.bootMACAddress"}),
    (host("b", bootMACAddress="zz", bootMode="x"), {"Invalid spec.bootMACAddress", "NotSupported spec.bootMode"}),
    (host("b", raid=_VOLUMES), {"Invalid spec.raid.hardwareRAIDVolumes[0].numberOfPhysicalDisks"}),
    (host("b") | {"spec": {}}, {"Required spec.online"}),
    (host("b", image={"checksum": "x"}), {"Required spec.image.url"}),
]
"""What an API server refuses by HTTP 422: reasons without what they begin with, and fields."""
