"""Writes ``schema/types.json``: the fields of Kubernetes' objects, read from the Go types of its API.

    python -m local.kubernetes.real.extract_types

The Go module of the release that ``make kubernetes`` builds has to be there. A field is its number, JSON name, kind and
flags (``inline``, ``pointer``, ``always``: written even if it is zero), and where a patch merges a list, by which key.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from local.kubernetes.real.build import source

TYPES = Path(__file__).parents[1] / "schema" / "types.json"
ROOTS = (
    *(
        f"core/v1.{kind}"
        for kind in (
            "Pod", "Service", "ConfigMap", "Secret", "Namespace", "ServiceAccount", "PersistentVolumeClaim", "Node",
            "PersistentVolume", "ResourceQuota", "LimitRange", "Event",
        )
    ),
    *(f"apps/v1.{kind}" for kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")),
    *(f"rbac/v1.{kind}" for kind in ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")),
    *("batch/v1.Job", "batch/v1.CronJob", "policy/v1.PodDisruptionBudget", "policy/v1.Eviction"),
    *("scheduling/v1.PriorityClass", "storage/v1.StorageClass", "coordination/v1.Lease", "networking/v1.Ingress"),
    *("autoscaling/v2.HorizontalPodAutoscaler", "autoscaling/v1.Scale", "authorization/v1.SelfSubjectAccessReview"),
    *("authorization/v1.SelfSubjectRulesReview", "authentication/v1.SelfSubjectReview", "meta/v1.DeleteOptions"),
    *("authentication/v1.TokenRequest",),
)  # fmt: skip
"""Kinds that a client sends; what they are made of is added."""
_META = "meta/v1"
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_ALIAS = re.compile(r"^type (\w+) ([^\s{]+)$", re.MULTILINE)
_FIELD = re.compile(r"^\t(?:\w+\s+)?(\S+)\s+`(.*)`", re.MULTILINE)
_PACKAGES = {
    "v1": "core/v1", "corev1": "core/v1", "apiv1": "core/v1", "metav1": _META,
    "schedulingv1alpha3": "scheduling/v1alpha3",
}  # fmt: skip
"""Packages by the names under which files of Go import them."""
_KINDS = {
    "string": "string", "bool": "bool", "int": "int", "int32": "int", "int64": "int", "uint32": "int",
    "float64": "double", "[]byte": "bytes", "resource.Quantity": "quantity", "intstr.IntOrString": "intstr",
    "runtime.RawExtension": "raw", "metav1.Duration": "duration", "types.UID": "string", "types.NodeName": "string",
}  # fmt: skip
_TIMES = {f"{_META}.Time", f"{_META}.MicroTime"}
Kind = str | list[Any]


class _Types:
    """The types of some packages, by ``package.name``."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.structs: dict[str, str] = {}
        self.aliases: dict[str, str] = {}
        for package, text in texts.items():
            self.structs |= {f"{package}.{name}": body for name, body in _STRUCT.findall(text)}
            self.aliases |= {f"{package}.{name}": other for name, other in _ALIAS.findall(text)}

    def kind(self, package: str, text: str) -> Kind:
        """The kind of a Go type. Raises ``KeyError`` for one that is not known."""
        text = text.removeprefix("*")
        if text in _KINDS:
            return _KINDS[text]
        if text.startswith("[]"):
            return ["list", self.kind(package, text[2:])]
        if values := re.match(r"map\[[^\]]+\](.+)", text):
            return ["map", self.kind(package, values[1])]
        prefix, _, name = text.rpartition(".")
        full = f"{_PACKAGES[prefix] if prefix else package}.{name}"
        if full in _TIMES:
            return "time"
        if full in self.structs:
            return full
        other = self.kind(full.partition(".")[0], self.aliases[full])
        # A list that has a name is a message of its own on the wire.
        return ["wrapped", other] if other[0] == "list" else other

    def fields(self, full: str) -> Iterator[tuple[str, list[Any]]]:
        """Number and description of each field of a struct."""
        for text, tags in _FIELD.findall(self.structs[full]):
            number, names = re.search(r'protobuf:"\w+,(\d+),', tags), re.search(r'json:"([^"]*)"', tags)
            if not number or not names:
                continue
            name, *options = names[1].split(",")
            if name == "-":
                continue
            inline = not name or "inline" in options
            flags = ["inline"] * inline + ["pointer"] * text.startswith("*")
            if not flags and "omitempty" not in options:
                flags = ["always"]
            entry = [name, self.kind(full.partition(".")[0], text), " ".join(flags)]
            key = re.search(r'patchMergeKey:"(\w+)"', tags)
            if re.search(r'patchStrategy:"[^"]*merge', tags):
                entry.append(key[1] if key else "")
            yield number[1], entry

    def tables(self) -> dict[str, dict[str, list[Any]]]:
        """The fields of the roots, and of all that they are made of."""
        tables: dict[str, dict[str, list[Any]]] = {}
        ahead = list(ROOTS)
        while ahead:
            full = ahead.pop()
            if full in tables:
                continue
            tables[full] = dict(self.fields(full))
            names = (_innermost(entry[1]) for entry in tables[full].values())
            ahead += [name for name in names if name in self.structs]
        return tables


def _innermost(kind: Kind) -> str:
    while isinstance(kind, list):
        kind = kind[1]
    return kind


def main() -> int:
    """Writes the file."""
    folder, machinery = source("kubernetes", "k8s.io/api"), source("kubernetes", "k8s.io/apimachinery")
    packages = {*(root.partition(".")[0] for root in ROOTS), *_PACKAGES.values()} - {_META}
    texts = {package: (folder / package / "types.go").read_text(encoding="utf-8") for package in packages}
    # Its types are in more than one file, and its times and durations are known by name.
    sources = sorted((machinery / "pkg/apis" / _META).glob("*.go"))
    texts[_META] = "\n".join(path.read_text(encoding="utf-8") for path in sources if not path.stem.endswith("_test"))
    tables = _Types(texts).tables()
    lines = (f"{json.dumps(name)}: {json.dumps(tables[name], separators=(',', ':'))}" for name in sorted(tables))
    TYPES.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    sys.stdout.write(f"{len(tables)} types\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
