"""Rights that Stockyard needs in a host's namespaces, by what the account is for: the one table of them.

``verify`` asks the API server for each, ``template`` grants exactly these, and the sweep looks at these kinds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

BASE = "base"
"""Objects that any kind of machine needs, or that are machines by themselves."""
METAL3 = "metal3"
"""Hosts of bare metal, which are their owner's: they are taken and given back."""
KUBEVIRT = "kubevirt"
"""Virtual machines of KubeVirt."""
CAPACITY = "capacity"
"""A look at nodes and pods of the whole host, to count what it still has room for; beside another feature."""
_OBJECT = ("get", "list", "create", "patch", "delete")
"""Verbs for objects that are applied, looked at, listed by their labels and deleted."""


@dataclass(frozen=True, slots=True)
class Right:
    """One verb on one resource in a namespace."""

    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{f'.{self.group}' if self.group else ''}"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object that Stockyard makes in a host, and what it does to such objects."""

    api_version: str
    kind: str
    resource: str
    verbs: Sequence[str] = _OBJECT
    lent: bool = False
    """Whether such objects are the host's owner's, who lends them: none is made or deleted, all are given back."""

    @property
    def group(self) -> str:
        """Group of the API; empty for the core."""
        return self.api_version.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class Feature:
    """A purpose of an account: the kinds of its objects, in the order in which orphans of them are removed."""

    kinds: Sequence[Kind]
    quota: Mapping[str, str] = field(default_factory=dict)
    """Limits of a namespace that the template proposes, as a ResourceQuota has them."""
    reads: Sequence[Right] = ()
    """Rights in the whole host, without which an account works, and counts less."""


CONFIG_MAP, SECRET = Kind("v1", "ConfigMap", "configmaps"), Kind("v1", "Secret", "secrets")
BARE_METAL_HOST = Kind("metal3.io/v1alpha1", "BareMetalHost", "baremetalhosts", ("get", "list", "patch"), lent=True)
VIRTUAL_MACHINE = Kind("kubevirt.io/v1", "VirtualMachine", "virtualmachines")
_OF_MACHINES = ("get", "list", "delete")
"""Verbs for what a virtual machine's controllers make of it."""
FEATURES: Mapping[str, Feature] = {
    BASE: Feature((CONFIG_MAP, SECRET), {"count/configmaps": "1000", "count/secrets": "1000"}),
    METAL3: Feature((BARE_METAL_HOST, SECRET), {"count/secrets": "1000"}),
    KUBEVIRT: Feature(
        (
            VIRTUAL_MACHINE,
            Kind("kubevirt.io/v1", "VirtualMachineInstance", "virtualmachineinstances", _OF_MACHINES),
            Kind("cdi.kubevirt.io/v1beta1", "DataVolume", "datavolumes", _OF_MACHINES),
            Kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims", _OF_MACHINES),
            SECRET,
        ),
        {"count/virtualmachines.kubevirt.io": "200", "count/secrets": "1000"},
    ),
    CAPACITY: Feature((), reads=(Right("", "nodes", "list"), Right("", "pods", "list"))),
}
"""Each feature of an account by its name."""


def kinds_of(features: Sequence[str]) -> Sequence[Kind]:
    """The kinds of objects of these features, each once."""
    return list(dict.fromkeys(kind for name in features for kind in FEATURES[name].kinds))


def rights_of(features: Sequence[str]) -> Iterator[Right]:
    """Every right that these features need in each namespace, each once."""
    for kind in kinds_of(features):
        for verb in kind.verbs:
            yield Right(kind.group, kind.resource, verb)


def reads_of(features: Sequence[str]) -> Sequence[Right]:
    """The rights of these features in the whole host, which an account may lack."""
    return [read for name in features for read in FEATURES[name].reads]
