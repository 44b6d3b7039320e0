"""Ways from a pack that an operator has chosen to all rights in a cluster, and pods that leave the level restricted."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

OPEN = "packs-open"
"""The namespace that an administrator has opened to packs of operators."""
Object = dict[str, Any]
_RBAC, _ADMISSION = "rbac.authorization.k8s.io/v1", "admissionregistration.k8s.io/v1"
_ALL = {"kind": "ClusterRole", "name": "cluster-admin", "apiGroup": "rbac.authorization.k8s.io"}
_ME = [{"kind": "User", "name": "oidc:operator", "apiGroup": "rbac.authorization.k8s.io"}]
_EVERYTHING = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]


def object_of(version: str, kind: str, name: str, namespace: str = "", **more: Any) -> Object:
    meta = {"name": name, **({"namespace": namespace} if namespace else {}), **more.pop("meta", {})}
    return {"apiVersion": version, "kind": kind, "metadata": meta, **more}


def pod(**spec: Any) -> Object:
    """The spec of a pod that is on the level restricted, with other fields in their place."""
    context = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    usual = {
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{"name": "a", "image": "example.org/a:1", "securityContext": context}],
    }
    return {**copy.deepcopy(usual), **spec}


def workload(kind: str, name: str, namespace: str, spec: Object) -> Object:
    labels = {"app": name}
    return object_of(
        "apps/v1",
        kind,
        name,
        namespace,
        spec={"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}},
    )


def container(**fields: Any) -> Object:
    """A pod whose only container has these fields; those of ``context`` are in its security context."""
    spec = pod()
    spec["containers"][0]["securityContext"] |= fields.pop("context", {})
    spec["containers"][0] |= fields
    return spec


def _webhook(kind: str) -> Object:
    hook = {
        "name": "grab.example.org",
        "clientConfig": {"url": "https://example.org/grab"},
        "rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    return object_of(_ADMISSION, kind, "grab", webhooks=[hook])


WAYS: Mapping[str, Object] = {
    "a binding of oneself to all rights": object_of(_RBAC, "ClusterRoleBinding", "grab", roleRef=_ALL, subjects=_ME),
    "a binding in the open namespace": object_of(_RBAC, "RoleBinding", "grab", OPEN, roleRef=_ALL, subjects=_ME),
    "a role that is added to edit": object_of(
        _RBAC,
        "ClusterRole",
        "grab",
        meta={"labels": {"rbac.authorization.k8s.io/aggregate-to-edit": "true"}},
        rules=_EVERYTHING,
    ),
    "a role that may bind": object_of(
        _RBAC,
        "Role",
        "grab",
        OPEN,
        rules=[{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["bind", "escalate"]}],
    ),
    "a pod with a controller's account": workload(
        "Deployment", "grab", "kube-system", pod(serviceAccountName="clusterrole-aggregation-controller")
    ),
    "a pod on every node of the system": workload("DaemonSet", "grab", "kube-system", pod()),
    "a token of an account as a Secret": object_of(
        "v1",
        "Secret",
        "grab",
        OPEN,
        type="kubernetes.io/service-account-token",
        meta={"annotations": {"kubernetes.io/service-account.name": "default"}},
    ),
    "an account of the system": object_of("v1", "ServiceAccount", "grab", "kube-system"),
    "a certificate of a user of one's choice": object_of(
        "certificates.k8s.io/v1",
        "CertificateSigningRequest",
        "grab",
        spec={
            "request": "LS0tLQ==",
            "signerName": "kubernetes.io/kube-apiserver-client",
            "usages": ["client auth"],
        },
    ),
    "a webhook that changes": _webhook("MutatingWebhookConfiguration"),
    "a webhook that reads": _webhook("ValidatingWebhookConfiguration"),
    "an API of one's own in place of RBAC": object_of(
        "apiregistration.k8s.io/v1",
        "APIService",
        "v1.grab.example.org",
        spec={
            "group": "grab.example.org",
            "version": "v1",
            "groupPriorityMinimum": 100,
            "versionPriority": 1,
            "insecureSkipTLSVerify": True,
            "service": {"name": "grab", "namespace": OPEN},
        },
    ),
    "a definition with a conversion": object_of(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "grabs.example.org",
        spec={
            "group": "example.org",
            "scope": "Cluster",
            "names": {"plural": "grabs", "singular": "grab", "kind": "Grab"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {}}}],
        },
    ),
    "an end of the agent's policy": object_of(
        _ADMISSION, "ValidatingAdmissionPolicyBinding", "stockyard-agent", spec={"policyName": "none"}
    ),
    "other code of the agent": object_of("v1", "ConfigMap", "stockyard-agent", "stockyard-system", data={"a": "b"}),
    "another image of the agent": workload("Deployment", "stockyard-agent", "stockyard-system", pod()),
    "a namespace that opens itself": object_of(
        "v1", "Namespace", "kube-public", meta={"labels": {"stockyard.dev/packs": "operators"}}
    ),
    "a volume of a node's disk": object_of(
        "v1",
        "PersistentVolume",
        "grab",
        spec={"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/"}},
    ),
    "a configuration of the system": object_of("v1", "ConfigMap", "kubeadm-config", "kube-system", data={"a": "b"}),
    "endpoints of the API server": object_of(
        "discovery.k8s.io/v1",
        "EndpointSlice",
        "kubernetes",
        OPEN,
        addressType="IPv4",
        endpoints=[{"addresses": ["192.0.2.1"]}],
    ),
    "a node of one's own": object_of("v1", "Node", "grab", meta={"labels": {"a": "b"}}),
    "a class of pods with another runtime": object_of("node.k8s.io/v1", "RuntimeClass", "grab", handler="grab"),
    "an account of packs": object_of("v1", "ServiceAccount", "stockyard-packs", "stockyard-packs"),
    "a namespace that nobody has opened": object_of("v1", "ConfigMap", "grab", "default", data={"a": "b"}),
}
"""Each is refused by the cluster's API server."""

HOST = {"name": "host", "hostPath": {"path": "/"}}
PODS: Mapping[str, Object] = {
    "privileged": container(context={"privileged": True, "allowPrivilegeEscalation": True}),
    "escalation": container(context={"allowPrivilegeEscalation": True}),
    "no word of escalation": container(context={"allowPrivilegeEscalation": None}),
    "a capability": container(context={"capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]}}),
    "capabilities kept": container(context={"capabilities": {"drop": ["NET_RAW"]}}),
    "a disk of the node": pod(volumes=[HOST]),
    "the node's network": pod(hostNetwork=True),
    "the node's processes": pod(hostPID=True),
    "the node's memory": pod(hostIPC=True),
    "a port of the node": container(ports=[{"containerPort": 80, "hostPort": 80}]),
    "root by number": container(context={"runAsUser": 0}),
    "root by silence": pod(securityContext={"seccompProfile": {"type": "RuntimeDefault"}}),
    "root by a container": container(context={"runAsNonRoot": False}),
    "no filter of calls": pod(securityContext={"runAsNonRoot": True}),
    "a filter turned off": container(context={"seccompProfile": {"type": "Unconfined"}}),
    "AppArmor turned off": container(context={"appArmorProfile": {"type": "Unconfined"}}),
    "another label of SELinux": container(context={"seLinuxOptions": {"type": "spc_t"}}),
    "a user of SELinux": pod(
        securityContext={
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
            "seLinuxOptions": {"user": "system_u"},
        }
    ),
    "proc unmasked": {**container(context={"procMount": "Unmasked"}), "hostUsers": False},
    "a setting of the kernel": pod(
        securityContext={
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
            "sysctls": [{"name": "kernel.msgmax", "value": "1"}],
        }
    ),
    "a volume of NFS": pod(volumes=[{"name": "n", "nfs": {"server": "192.0.2.1", "path": "/"}}]),
    "an init container": pod(initContainers=[{"name": "i", "image": "example.org/a:1"}]),
    "a probe of another host": container(
        livenessProbe={"httpGet": {"port": 80, "host": "169.254.169.254", "path": "/"}},
    ),
    "a hook that calls another host": container(
        lifecycle={"preStop": {"httpGet": {"port": 80, "host": "169.254.169.254"}}}
    ),
}
"""Specs of pods that are not on the level restricted."""
RESTRICTED: Mapping[str, Object] = {
    "the usual": pod(),
    "volumes": pod(volumes=[{"name": "e", "emptyDir": {}}, {"name": "c", "configMap": {"name": "c"}}]),
    "a low port": container(context={"capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}}),
    "all by the container": {
        **container(context={"runAsNonRoot": True, "seccompProfile": {"type": "Localhost", "localhostProfile": "a"}}),
        "securityContext": {},
    },
    "settings that are safe": pod(
        securityContext={
            "runAsNonRoot": True,
            "runAsUser": 1000,
            "seccompProfile": {"type": "RuntimeDefault"},
            "sysctls": [{"name": "net.ipv4.tcp_syncookies", "value": "1"}],
        }
    ),
}
"""Specs that are."""
