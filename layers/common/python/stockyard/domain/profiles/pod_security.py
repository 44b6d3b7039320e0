"""The level ``restricted`` of Kubernetes' pod security standards, for the pods that an object makes. Pure.

The rules are those of https://kubernetes.io/docs/concepts/security/pod-security-standards/ for pods on Linux. What has
another shape than in the API is a fault too, or is refused there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_TEMPLATES: Mapping[str, tuple[str, ...]] = {
    "Pod": ("spec",),
    "CronJob": ("spec", "jobTemplate", "spec", "template", "spec"),
    **dict.fromkeys(
        ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job"),
        ("spec", "template", "spec"),
    ),
}
_VOLUMES = frozenset(
    {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
)
_SYSCTLS = frozenset(
    {
        *("kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_unprivileged_port_start"),
        *("net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range", "net.ipv4.ip_local_reserved_ports"),
        *("net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl"),
        *("net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"),
    }
)
_SELINUX = frozenset({"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"})
_SECCOMP = frozenset({"RuntimeDefault", "Localhost"})
_APPARMOR = "container.apparmor.security.beta.kubernetes.io/"
_HOST_FIELDS = ("hostNetwork", "hostPID", "hostIPC")
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
Path = tuple[str, ...]
_Fault = str


def pod_faults(item: Mapping[str, Any]) -> Iterator[_Fault]:
    """Places where the pods of an object are not on the level ``restricted``, each with the field. None for other
    kinds."""
    path = _TEMPLATES.get(str(item.get("kind")))
    if path is None:
        return
    *above, last = path
    holder: Any = item
    for name in above:
        holder = holder.get(name) if isinstance(holder, Mapping) else None
    spec = holder.get(last) if isinstance(holder, Mapping) else None
    field_path = ".".join(path)
    if not isinstance(spec, Mapping):
        yield f"{field_path}: is no pod"
        return
    annotations = _object(_object(holder.get("metadata")).get("annotations"))
    if any(name.startswith(_APPARMOR) and not _is_profile(value) for name, value in annotations.items()):
        yield f"{field_path}: its annotations turn AppArmor off"
    yield from _of_pod(field_path, spec)


def _is_profile(value: Any) -> bool:
    return value == "runtime/default" or str(value).startswith("localhost/")


def _of_pod(field_path: str, spec: Mapping[str, Any]) -> Iterator[_Fault]:
    for name in _HOST_FIELDS:
        if spec.get(name):
            yield f"{field_path}.{name}: is not of the level restricted"
    if str(spec.get("priorityClassName") or "").startswith("system-"):
        yield f"{field_path}.priorityClassName: is for what the cluster itself needs"
    yield from _of_volumes(f"{field_path}.volumes", spec.get("volumes"))
    context = spec.get("securityContext")
    if context is not None and not isinstance(context, Mapping):
        yield f"{field_path}.securityContext: is no object"
        return
    yield from _of_context(f"{field_path}.securityContext", _object(context))
    for sysctl in _list(_object(context).get("sysctls")):
        if not _is_one_of(_object(sysctl).get("name"), _SYSCTLS):
            yield f"{field_path}.securityContext.sysctls: {_object(sysctl).get('name')} is not of the level restricted"
    for field in _CONTAINERS:
        containers = spec.get(field)
        if containers is not None and not isinstance(containers, list):
            yield f"{field_path}.{field}: is no list"
        for number, container in enumerate(_list(containers)):
            yield from _of_container(f"{field_path}.{field}[{number}]", _object(container), _object(context))


def _of_volumes(field_path: str, volumes: Any) -> Iterator[_Fault]:
    if volumes is not None and not isinstance(volumes, list):
        yield f"{field_path}: is no list"
    for number, volume in enumerate(_list(volumes)):
        kinds = set(_object(volume)) - {"name"}
        if not kinds <= _VOLUMES:
            yield f"{field_path}[{number}]: {', '.join(sorted(kinds - _VOLUMES))} is not of the level restricted"


def _of_context(field_path: str, context: Mapping[str, Any]) -> Iterator[_Fault]:
    """Faults that a pod's context and a container's may both have."""
    labels = _object(context.get("seLinuxOptions"))
    if not _is_one_of(labels.get("type", ""), _SELINUX) or labels.get("user") or labels.get("role"):
        yield f"{field_path}.seLinuxOptions: is not of the level restricted"
    profile = context.get("seccompProfile")
    if profile is not None and not _is_one_of(_object(profile).get("type"), _SECCOMP):
        yield f"{field_path}.seccompProfile: must be RuntimeDefault or Localhost"
    armor = context.get("appArmorProfile")
    if armor is not None and not _is_one_of(_object(armor).get("type"), _SECCOMP):
        yield f"{field_path}.appArmorProfile: must be RuntimeDefault or Localhost"
    if _object(context.get("windowsOptions")).get("hostProcess"):
        yield f"{field_path}.windowsOptions: is not of the level restricted"
    if context.get("runAsUser") == 0:
        yield f"{field_path}.runAsUser: must not be 0"


def _of_container(field_path: str, container: Mapping[str, Any], pod: Mapping[str, Any]) -> Iterator[_Fault]:
    context, at = _object(container.get("securityContext")), f"{field_path}.securityContext"
    yield from _of_context(at, context)
    if context.get("privileged"):
        yield f"{at}.privileged: is not of the level restricted"
    if context.get("allowPrivilegeEscalation") is not False:
        yield f"{at}.allowPrivilegeEscalation: must be false"
    if context.get("procMount", "Default") != "Default":
        yield f"{at}.procMount: must be Default"
    if context.get("runAsNonRoot", pod.get("runAsNonRoot")) is not True:
        yield f"{at}.runAsNonRoot: must be true"
    if context.get("seccompProfile") is None and pod.get("seccompProfile") is None:
        yield f"{at}.seccompProfile: must be RuntimeDefault or Localhost"
    capabilities = _object(context.get("capabilities"))
    if "ALL" not in _list(capabilities.get("drop")):
        yield f"{at}.capabilities.drop: must hold ALL"
    if set(map(str, _list(capabilities.get("add")))) - {"NET_BIND_SERVICE"}:
        yield f"{at}.capabilities.add: may hold NET_BIND_SERVICE alone"
    for number, port in enumerate(_list(container.get("ports"))):
        if _object(port).get("hostPort"):
            yield f"{field_path}.ports[{number}].hostPort: is not of the level restricted"
    yield from _of_handlers(field_path, container)


def _of_handlers(field_path: str, container: Mapping[str, Any]) -> Iterator[_Fault]:
    """Probes and hooks that would have the kubelet call another host."""
    hooks = _object(container.get("lifecycle"))
    handlers = {
        **{name: container.get(name) for name in ("livenessProbe", "readinessProbe", "startupProbe")},
        **{f"lifecycle.{name}": hooks.get(name) for name in ("postStart", "preStop")},
    }
    for name, handler in handlers.items():
        if any(_object(_object(handler).get(handler_kind)).get("host") for handler_kind in ("httpGet", "tcpSocket")):
            yield f"{field_path}.{name}: its host is not of the level restricted"


def _is_one_of(value: Any, texts: frozenset[str]) -> bool:
    return isinstance(value, str) and value in texts


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
