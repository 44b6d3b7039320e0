"""The cheapest node for each claim by brute force, over plain data.

It tries every zone of every offering of every kind and knows no masks, no index and no algebra: it shares no code
with what it judges.
"""

from __future__ import annotations

from typing import Any

LARGEST = 2**63 - 1
NAME_KEYS = ("vcluster.com/node-type", "node.kubernetes.io/instance-type")
ZONE, CAPACITY = "topology.kubernetes.io/zone", "karpenter.sh/capacity-type"
ARCH = "kubernetes.io/arch"
PLAIN = ("cpu", "memory", "pods", "ephemeral-storage")
Way = tuple[str, str, tuple[str, ...]]
"""Kind, capacity type and the zones that may be."""


def solve(problem: dict[str, Any]) -> list[list[Way]]:
    """For each claim, in order, every way to serve it, cheapest first; the first one is taken."""
    free = dict(problem["free"])
    answers = []
    for claim in problem["claims"]:
        ways = possible(problem, claim, free)
        answers.append([(name, capacity, zones) for _, name, capacity, _, zones in ways])
        if ways and next(kind for kind in problem["kinds"] if kind["name"] == ways[0][1])["limited"]:
            free[ways[0][1]] -= 1
    return answers


def possible(problem: dict[str, Any], claim: dict[str, Any], free: dict[str, int]) -> list[tuple[Any, ...]]:
    """Every way to serve one claim: (price, name, capacity type, place of the offering, zones), sorted."""
    ways = []
    for kind in problem["kinds"]:
        if not suits(problem, claim, kind) or (kind["limited"] and free.get(kind["name"], 0) < 1):
            continue
        for index, offering in enumerate(kind["offerings"]):
            if not meets(entries(claim, CAPACITY), [offering["capacity_type"]]):
                continue
            if offering["capacity_type"] != "on-demand" and not entries(claim, CAPACITY) and not claim.get("bids"):
                continue
            zones = tuple(
                zone
                for zone in offering["zones"]
                if meets(entries(claim, ZONE), [zone])
                and not refused(problem, kind["name"], offering["capacity_type"], zone)
                and not (zone == "*" and refused_as_asked(problem, claim, kind["name"], offering["capacity_type"]))
            )
            if zones:
                ways.append((price(claim, kind, offering), kind["name"], offering["capacity_type"], index, zones))
    ways.sort()
    if excludes_only(entries(claim, ARCH)):
        likely_ways = [way for way in ways if has_image(problem, claim.get("likely", {}), way[1])]
        if likely_ways and various(problem, claim, likely_ways):
            return likely_ways
    return ways if various(problem, claim, ways) else []


def suits(problem: dict[str, Any], claim: dict[str, Any], kind: dict[str, Any]) -> bool:
    """Everything that does not depend on the offering or on the moment."""
    if claim["provider"] not in (None, kind["provider"]) or kind["provider"] in claim["out_of_reach"]:
        return False
    if claim["allowed"] is not None and not any(
        entry in (kind["name"], kind["provider"] + ".*") for entry in claim["allowed"]
    ):
        return False
    if (
        not has_image(problem, claim.get("images", {}), kind["name"])
        or not kind["available"]
        or kind["unserved"]
        or not (any(counts_of_names(claim)) or asked_or_usual(claim, kind))
        or any(amount < 0 for amount in kind["allocatable"].values())
    ):
        return False
    for name, amount in claim["resources"].items():
        if amount > kind["allocatable"].get(name, 0) and amount > 0:
            return False
    for name in {*kind["capacity"], *kind["allocatable"]}:
        special = name not in PLAIN and not name.startswith("hugepages-")
        has = kind["capacity"].get(name, 0) > 0 or kind["allocatable"].get(name, 0) > 0
        if special and has and claim["resources"].get(name, 0) <= 0 and 1 not in counts_of_names(claim):
            return False
    keys = {entry["key"] for entry in claim["requirements"]} - {ZONE, CAPACITY}
    unasked = claim["resources"].get("memory", 0) <= 0 and not any(counts_of_names(claim))
    return not (kind["small"] and unasked) and all(
        named(problem, claim, key, kind)
        if key in NAME_KEYS
        else meets(entries(claim, key), kind["properties"].get(key, []))
        for key in keys
    )


def asked_or_usual(claim: dict[str, Any], kind: dict[str, Any]) -> bool:
    """Whether the claim says an architecture, or the kind has the one that nobody needs to ask for, or tells none."""
    own = kind["properties"].get(ARCH, [])
    return bool(entries(claim, ARCH)) or not own or bool({"amd64", "*"} & set(own))


def has_image(problem: dict[str, Any], images: dict[str, list[str]], name: str) -> bool:
    """Whether images by provider are for the kind of that name, as far as both are told."""
    kind = next(kind for kind in problem["kinds"] if kind["name"] == name)
    own, served = kind["properties"].get(ARCH, []), images.get(kind["provider"], [])
    return not own or not served or "*" in own or bool(set(own) & set(served))


def excludes_only(claim_entries: list[dict[str, Any]]) -> bool:
    """Whether no value is named, but for those that are not wanted."""
    return {entry.get("operator", "In") for entry in claim_entries} <= {"NotIn", "Exists"} and (
        not claim_entries or bool(listed(claim_entries, "NotIn"))
    )


def counts_of_names(claim: dict[str, Any]) -> list[int]:
    """Number of names of kinds that the claim lists, by each key that names them."""
    return [
        len({name for name in listed(named_by, "In") if all(accepts(entry, name) for entry in named_by)})
        for named_by in (entries(claim, key) for key in NAME_KEYS)
    ]


def entries(claim: dict[str, Any], key: str) -> list[dict[str, Any]]:
    return [entry for entry in claim["requirements"] if entry["key"] == key]


def number(value: str) -> int | None:
    digits = value[1:] if value[:1] in ("+", "-") else value
    return int(value) if digits and all(letter in "0123456789" for letter in digits) else None


def in_range(entry: dict[str, Any], value: str) -> bool:
    """Whether the bound of one entry lets the value pass; entries without one let all pass."""
    operator = entry.get("operator", "In")
    if operator not in ("Gt", "Gte", "Lt", "Lte"):
        return True
    integer, bound = number(value), int(entry["values"][0])
    if integer is None:
        return False
    return {"Gt": integer > bound, "Gte": integer >= bound, "Lt": integer < bound, "Lte": integer <= bound}[operator]


def accepts(entry: dict[str, Any], value: str) -> bool:
    operator = entry.get("operator", "In")
    if operator == "In":
        return value in entry["values"]
    if operator == "NotIn":
        return value not in entry["values"]
    if operator in ("DoesNotExist", "NotExists"):
        return False
    return in_range(entry, value)


def listed(claim_entries: list[dict[str, Any]], operator: str) -> list[str]:
    return [value for entry in claim_entries if entry.get("operator", "In") == operator for value in entry["values"]]


def nothing(claim_entries: list[dict[str, Any]]) -> bool:
    """Whether no value at all is left: then the key must be absent."""
    operators = [entry.get("operator", "In") for entry in claim_entries]
    if "In" in operators:
        return not any(all(accepts(entry, value) for entry in claim_entries) for value in listed(claim_entries, "In"))
    if "DoesNotExist" in operators or "NotExists" in operators:
        return True
    low, high = -(2**63), LARGEST
    for entry in claim_entries:
        if entry["operator"] in ("Gt", "Gte"):
            low = max(low, int(entry["values"][0]) + (entry["operator"] == "Gt"))
        if entry["operator"] in ("Lt", "Lte"):
            high = min(high, int(entry["values"][0]) - (entry["operator"] == "Lt"))
    return low > high


def excluded(claim_entries: list[dict[str, Any]]) -> list[str]:
    """Values that are excluded though the bounds would let them pass."""
    return [value for value in listed(claim_entries, "NotIn") if all(in_range(entry, value) for entry in claim_entries)]


def meets(claim_entries: list[dict[str, Any]], values: list[str]) -> bool:
    """Whether something with these values of a key (none: without the key) can satisfy all entries."""
    if not claim_entries:
        return True
    if not values:
        return nothing(claim_entries) or (
            "In" not in {e.get("operator", "In") for e in claim_entries} and bool(excluded(claim_entries))
        )
    if values == ["*"]:
        return not nothing(claim_entries)
    return any(all(accepts(entry, value) for entry in claim_entries) for value in values)


def named(problem: dict[str, Any], claim: dict[str, Any], key: str, kind: dict[str, Any]) -> bool:
    """The keys that name kinds: what a value names, among the kinds of the claim's provider or all."""
    claim_entries = entries(claim, key)
    scope = [other_kind for other_kind in problem["kinds"] if claim["provider"] in (None, other_kind["provider"])]

    def names(value: str) -> bool:
        if any(other_kind["name"] == value for other_kind in scope):
            return bool(kind["name"] == value)
        label = "node.kubernetes.io/instance-type"
        if key == label and any(value in other_kind["properties"].get(label, []) for other_kind in scope):
            return bool(value in kind["properties"].get(label, []))
        return bool(kind["bare"] == value) and sum(other_kind["bare"] == value for other_kind in scope) == 1

    if "In" in {entry.get("operator", "In") for entry in claim_entries}:
        return any(
            names(value)
            for value in listed(claim_entries, "In")
            if all(accepts(entry, value) for entry in claim_entries)
        )
    if nothing(claim_entries) or any(entry["operator"] in ("Gt", "Gte", "Lt", "Lte") for entry in claim_entries):
        return False  # no kind is without a name, and no name is a number
    return not any(names(value) for value in excluded(claim_entries))


def refused(problem: dict[str, Any], name: str, capacity: str, zone: str) -> bool:
    return [name, capacity, zone] in problem["refused"] or [name, capacity, "*"] in problem["refused"]


def refused_as_asked(problem: dict[str, Any], claim: dict[str, Any], name: str, capacity: str) -> bool:
    """Whether each zone that the claim names was refused: what may be anywhere would have to be in one of them."""
    zone_entries = entries(claim, ZONE)
    zones = [zone for zone in listed(zone_entries, "In") if all(accepts(entry, zone) for entry in zone_entries)]
    return bool(zones) and all([name, capacity, zone] in problem["refused"] for zone in zones)


def price(claim: dict[str, Any], kind: dict[str, Any], offering: dict[str, Any]) -> tuple[bool, float]:
    """Key of comparison: cost within a provider, money over all, and last what has no money price."""
    real, unit = offering["usd_hour"], kind["unit_price"]
    if claim["provider"] is not None:
        if kind["cost_given"] or real is None:
            return (False, kind["cost"])
        return (False, real / unit if unit else real)
    if real is not None:
        return (False, real)
    return (False, kind["cost"] * unit) if unit is not None else (True, kind["cost"])


def various(problem: dict[str, Any], claim: dict[str, Any], ways: list[tuple[Any, ...]]) -> bool:
    kinds = {kind["name"]: kind for kind in problem["kinds"]}
    for key in {entry["key"] for entry in claim["requirements"]}:
        claim_entries = entries(claim, key)
        least = max((entry["minValues"] for entry in claim_entries if "minValues" in entry), default=0)
        key_values: set[str] = set()
        for _, name, capacity, _, zones in ways:
            if key in NAME_KEYS:
                key_values.add(name)
                continue
            values = {ZONE: list(zones), CAPACITY: [capacity]}.get(key, kinds[name]["properties"].get(key, []))
            key_values |= {
                value for value in values if value != "*" and all(accepts(entry, value) for entry in claim_entries)
            }
        if len(key_values) < least:
            return False
    return True
