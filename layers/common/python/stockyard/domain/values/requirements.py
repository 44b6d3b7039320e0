"""Requirements on labels and properties of nodes, and their algebra.

A requirement is a set of values of one key: a finite set, or the complement of one, optionally limited by bounds. An
empty finite set means that the key must be absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.patterns import pattern

IN, NOT_IN, EXISTS, DOES_NOT_EXIST = "In", "NotIn", "Exists", "DoesNotExist"
_BOUNDS: Mapping[str, tuple[bool, int]] = {"Gt": (True, 1), "Gte": (True, 0), "Lt": (False, -1), "Lte": (False, 0)}
"""Whether the operator is a lower bound, and the distance from its number to the inclusive bound."""
OPERATORS = (IN, NOT_IN, EXISTS, DOES_NOT_EXIST, "NotExists", *_BOUNDS)
SMALLEST, LARGEST = -(2**63), 2**63 - 1
MOST_MIN_VALUES = 50

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
CAPACITY_TYPE = "karpenter.sh/capacity-type"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
NODE_TYPE = "vcluster.com/node-type"
ARCH = "kubernetes.io/arch"
OS = "kubernetes.io/os"
HOSTNAME = "kubernetes.io/hostname"
NODE_POOL = "karpenter.sh/nodepool"
_ALIASES: Mapping[str, str] = {
    "failure-domain.beta.kubernetes.io/zone": ZONE,
    "failure-domain.beta.kubernetes.io/region": REGION,
    "beta.kubernetes.io/arch": ARCH,
    "beta.kubernetes.io/os": OS,
    "beta.kubernetes.io/instance-type": INSTANCE_TYPE,
    "topology.gke.io/zone": ZONE,
}
"""Former spellings of labels, and spellings of vendors. Those that drivers of volumes have are ``_OF_DRIVERS``."""
_OF_DRIVERS = pattern(r"topology\.(?:[^/]+\.)?csi\.[^/]+/(?:k8s-)?(zone|region)")
"""The label by which a CSI driver knows zones or regions: ``topology.``, the driver's name, and what it is."""


def normal_key(key: str) -> str:
    """The key by which Kubernetes knows the label now: deprecated spellings are replaced, and those of CSI drivers.

    A driver of volumes, such as that of EBS, has its own label for the zone of a node. Its value is the node's zone.
    """
    if "csi" in key and (driver := _OF_DRIVERS.fullmatch(key)):
        return ZONE if driver[1] == "zone" else REGION
    return _ALIASES.get(key, key)


def integer(value: str) -> int | None:
    """``value`` as a signed 64-bit integer, or None when it is not one."""
    digits = value[1:] if value[:1] in ("+", "-") else value
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 40:  # a longer one is out of range or padding
        return None
    number = int(value)
    return number if SMALLEST <= number <= LARGEST else None


@dataclass(frozen=True, slots=True)
class Requirement:
    """The values that one key may have: ``values``, or with ``complement`` all values except ``values``.

    ``gte`` and ``lte`` allow only integers between them. ``min_values`` is the least number of values to choose from.
    """

    complement: bool
    values: frozenset[str] = frozenset()
    gte: int | None = None
    lte: int | None = None
    min_values: int | None = None

    @classmethod
    def of(cls, operator: str, values: Iterable[str | int] = (), min_values: int | None = None) -> Requirement:
        """The requirement of an operator and its values. Raises ``ValueError`` when they do not match."""
        texts = [value if type(value) is str else _value(value) for value in values]
        if min_values is not None and not (type(min_values) is int and 1 <= min_values <= MOST_MIN_VALUES):
            raise ValueError(f"minValues is an integer from 1 to {MOST_MIN_VALUES}, not {min_values!r}")
        if operator in (IN, NOT_IN):
            if not texts:
                raise ValueError(f"{operator} needs at least one value")
            return cls(operator == NOT_IN, frozenset(texts), None, None, min_values)
        if operator in _BOUNDS:
            return _bound(operator, texts, min_values)
        if operator not in OPERATORS:
            raise ValueError(f"the operator {operator!r} is not known: use one of {', '.join(OPERATORS)}")
        if texts:
            raise ValueError(f"{operator} takes no values")
        return cls(operator == EXISTS, frozenset(), None, None, min_values)

    @property
    def bounded(self) -> bool:
        """Whether only integers of a range are allowed."""
        return self.gte is not None or self.lte is not None

    @property
    def excludes_only(self) -> bool:
        """Whether it names nothing but values that are not wanted."""
        return self.complement and bool(self.values) and not self.bounded

    @property
    def empty(self) -> bool:
        """Whether no value is allowed. A complement always allows one."""
        return not self.complement and not self.values

    @property
    def operator(self) -> str:
        """The operator of the set without its bounds, so a range is ``Exists``."""
        if self.complement:
            return NOT_IN if self.values else EXISTS
        return IN if self.values else DOES_NOT_EXIST

    @property
    def absence_fits(self) -> bool:
        """Whether a node without the key satisfies the requirement."""
        return self.complement == bool(self.values)

    def has(self, value: str) -> bool:
        """Whether the key may have ``value``."""
        return (value in self.values) != self.complement and self.within(value)

    def within(self, value: str) -> bool:
        """Whether ``value`` is within the bounds. With a bound, only integers are."""
        if self.gte is None and self.lte is None:
            return True
        number = integer(value)
        if number is None:
            return False
        return (self.gte is None or number >= self.gte) and (self.lte is None or number <= self.lte)

    def intersection(self, requirement: Requirement) -> Requirement:
        """The values that both allow, with the larger ``min_values``."""
        gte, lte = _tighter(max, self.gte, requirement.gte), _tighter(min, self.lte, requirement.lte)
        least = _tighter(max, self.min_values, requirement.min_values)
        if gte is not None and lte is not None and gte > lte:
            return Requirement(False, frozenset(), None, None, least)
        complement = self.complement and requirement.complement
        if complement:
            values = self.values | requirement.values
        elif self.complement:
            values = requirement.values - self.values
        elif requirement.complement:
            values = self.values - requirement.values
        else:
            values = self.values & requirement.values
        if gte is not None or lte is not None:
            bounds = Requirement(True, frozenset(), gte, lte)
            values = frozenset(value for value in values if bounds.within(value))
        if not complement:
            gte = lte = None
        return Requirement(complement, values, gte, lte, least)

    def overlaps(self, requirement: Requirement) -> bool:
        """Whether one node can satisfy both: there is a value that both allow, or both allow the key's absence."""
        return not self.intersection(requirement).empty or (self.absence_fits and requirement.absence_fits)

    def entries(self, key: str) -> list[dict[str, Any]]:
        """The requirement as selector entries: two for two bounds. Exclusions within bounds are lost."""
        extra = {} if self.min_values is None else {"minValues": self.min_values}
        if self.bounded:
            bounds = (("Gte", self.gte), ("Lte", self.lte))
            return [
                {"key": key, "operator": operator, "values": [str(bound)], **extra}
                for operator, bound in bounds
                if bound is not None
            ]
        listed = {"values": sorted(self.values)} if self.values else {}
        return [{"key": key, "operator": self.operator, **listed, **extra}]


class Requirements(dict[str, Requirement]):
    """Requirements by key, in the order in which the keys came. A key that is not listed may have any value or none."""

    __slots__ = ()

    @classmethod
    def of(
        cls, entries: Iterable[Mapping[str, Any]], memory: dict[tuple[Any, ...], Requirement] | None = None
    ) -> Requirements:
        """From selector entries: ``key`` or ``property``, ``operator`` (``In`` when missing), ``values`` or ``value``.

        Several entries of one key are intersected. ``memory`` keeps the requirements that a batch of claims has read.
        Raises ``ValueError``; its text names the key.
        """
        memory = {} if memory is None else memory
        by_key = cls()
        for entry in entries:
            key, values = entry.get("key"), entry.get("values")
            try:
                if type(values) is list and len(entry) == 3:
                    identity = (key, entry.get("operator"), *values)
                else:
                    identity = _identity(entry, values)
                requirement = memory.get(identity)
                if requirement is None:
                    requirement = memory[identity] = _requirement(entry)
            except TypeError:  # a value is not hashable, and will be refused
                requirement = _requirement(entry)
            name = entry["property"] if key is None else key
            if name in _ALIASES or "csi" in name:
                name = normal_key(name)
            before = by_key.get(name)
            by_key[name] = requirement if before is None else _both(before, requirement, memory)
        return by_key


def _both(first: Requirement, second: Requirement, memory: dict[tuple[Any, ...], Requirement]) -> Requirement:
    """The intersection, computed once per pair. ``memory`` references both, so that their identities stay unique."""
    identity = (id(first), id(second))
    intersection = memory.get(identity)
    if intersection is None:
        intersection = memory[identity] = first.intersection(second)
    return intersection


def _identity(entry: Mapping[str, Any], values: Any) -> tuple[Any, ...]:
    """The memory's key for an entry in any form. It begins with an empty text, which no requirement's key is."""
    listed = tuple(values) if type(values) is list else values
    read = entry.get
    return ("", read("key"), read("property"), read("operator"), listed, read("value"), read("minValues"))


def _requirement(entry: Mapping[str, Any]) -> Requirement:
    """One selector entry, checked."""
    key = entry.get("property") if entry.get("key") is None else entry["key"]
    if not isinstance(key, str) or not key:
        raise ValueError("a requirement needs a key")
    if entry.get("key") is not None and entry.get("property") is not None:
        raise ValueError(f"{key}: give key or property, not both")
    if entry.get("values") is not None and entry.get("value") is not None:
        raise ValueError(f"{key}: give value or values, not both")
    values = entry.get("values")
    if values is None:
        values = () if entry.get("value") is None else (entry["value"],)
    operator = entry.get("operator")
    if not isinstance(values, list | tuple) or not isinstance(operator, str | None):
        raise ValueError(f"{key}: values is a list, operator a text")
    try:
        return Requirement.of(IN if operator is None else operator, values, entry.get("minValues"))
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from None


def _value(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise ValueError(f"a value is a text, not {value!r}")


def _bound(operator: str, values: Sequence[str], min_values: int | None) -> Requirement:
    lower, step = _BOUNDS[operator]
    number = integer(values[0]) if len(values) == 1 else None
    if number is None:
        raise ValueError(f"{operator} needs exactly one integer")
    bound = number + step
    if not SMALLEST <= bound <= LARGEST:  # no integer is beyond the bound
        return Requirement(False, frozenset(), None, None, min_values)
    return Requirement(True, frozenset(), bound if lower else None, None if lower else bound, min_values)


def _tighter(choose: Any, first: int | None, second: int | None) -> int | None:
    if first is None or second is None:
        return second if first is None else first
    return int(choose(first, second))
