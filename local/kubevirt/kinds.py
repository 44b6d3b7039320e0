"""Definitions of the kinds that KubeVirt and its importer of images serve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from local.kubernetes.definitions import KUBEVIRT, definitions

_ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DATA_VOLUMES: Mapping[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "datavolumes.cdi.kubevirt.io"},
    "spec": {
        "group": "cdi.kubevirt.io",
        "scope": "Namespaced",
        "names": {
            "plural": "datavolumes",
            "singular": "datavolume",
            "kind": "DataVolume",
            "listKind": "DataVolumeList",
            "shortNames": ["dv", "dvs"],
        },
        "versions": [
            {
                "name": "v1beta1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": _ANYTHING, "status": _ANYTHING},
                        "required": ["spec"],
                    }
                },
            }
        ],
    },
}
"""Written here: nobody but simulated controllers makes such objects, so their fields are not judged."""


def kinds() -> Sequence[Mapping[str, Any]]:
    """The definitions, as an administrator applies them."""
    return (*definitions(KUBEVIRT), DATA_VOLUMES)
