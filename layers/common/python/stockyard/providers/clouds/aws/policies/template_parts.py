"""The parts of the tenant's template, each for a feature: who deploys it says by a parameter which of them it has.

Left out are the policies of the part, and what they are attached by. The role tells what is deployed by a tag.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

KUBEADM, EKS, FILES, BLOCKS = "kubeadm", "eks", "efs", "capacity-blocks"
"""The features, as the role's tag names them."""
TAG = "stockyard:features"
"""The tag on the tenant's role that says which parts are deployed."""
COMMON = "common"
"""The first word of that tag: what is in every part, so that the value is never empty and begins with no space."""
YES, NO = "yes", "no"


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the template. ``purpose`` ends the sentence "without the part for"."""

    feature: str
    parameter: str
    purpose: str
    description: str
    needs: str = ""
    """The feature without which this one is of no use; left out, it takes this one with it."""

    @property
    def condition(self) -> str:
        """The condition of the template that holds where the part is deployed."""
        return f"Has{self.parameter}"

    @property
    def setting(self) -> str:
        """Setting by which the part is deployed."""
        return f"{self.parameter}={YES}"


PARTS = (
    Part(
        KUBEADM,
        "Kubeadm",
        "clusters that kubeadm sets up on EC2",
        "Whether Stockyard may make clusters that kubeadm sets up on EC2, with a load balancer and snapshots of etcd.",
    ),
    Part(EKS, "Eks", "clusters on EKS", "Whether Stockyard may make clusters on EKS with node groups."),
    Part(
        FILES,
        "Efs",
        "shared files on EFS",
        "Whether clusters on EKS may have files on EFS that many pods write. Needs Eks.",
        needs=EKS,
    ),
    Part(
        BLOCKS,
        "CapacityBlocks",
        "capacity blocks",
        "Whether clusters on EKS may use machines of capacity reservations of this account. Needs Eks.",
        needs=EKS,
    ),
)
EARLIER = "EarlierEks"
"""The parameter of accounts with clusters on EKS that are older than version 8, whose names have no prefix and whose
nodes carry no tag of ours: with ``yes`` they go on, and the role reaches as far as it did before."""
BY_FEATURE = {part.feature: part for part in PARTS}


def parameters() -> dict[str, Any]:
    """The section ``Parameters``: each part is there unless somebody says no; earlier clusters, if somebody says so."""
    choice = {"Type": "String", "AllowedValues": [YES, NO]}
    earlier = (
        "Whether this account has clusters on EKS that Stockyard made by version 7 of this template or an older one."
        " With yes they go on, and the role reaches further than what Stockyard has made."
    )
    return {
        **{part.parameter: {**choice, "Default": YES, "Description": part.description} for part in PARTS},
        EARLIER: {**choice, "Default": NO, "Description": earlier},
    }


def conditions() -> dict[str, Any]:
    """The section ``Conditions``."""
    return {
        **{part.condition: _holds(part) for part in PARTS},
        f"Has{EARLIER}": {"Fn::Equals": [{"Ref": EARLIER}, YES]},
    }


def with_earlier(value: Any, otherwise: Any) -> dict[str, Any]:
    """A value that the account has which has clusters of an earlier release, and that of all others. None: no value."""
    absent = {"Ref": "AWS::NoValue"}
    return {"Fn::If": [f"Has{EARLIER}", absent if value is None else value, otherwise]}


def statements_of(feature: str, statements: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Statements that a policy has with the part."""
    return [_if(feature, statement, {"Ref": "AWS::NoValue"}) for statement in statements]


def conditional(resource: dict[str, Any], feature: str) -> dict[str, Any]:
    """A resource that is there with its part; without a feature, always."""
    return {"Condition": BY_FEATURE[feature].condition, **resource} if feature else resource


def attached(policies: Mapping[str, str]) -> list[Any]:
    """The list of managed policies of a role: name -> feature, empty for those that are always there."""
    return [_if(feature, {"Ref": name}, {"Ref": "AWS::NoValue"}) for name, feature in sorted(policies.items())]


def tag() -> dict[str, Any]:
    """The tag that says what is deployed."""
    words = [_if(part.feature, f" {part.feature}", "") for part in PARTS]
    return {"Key": TAG, "Value": {"Fn::Join": ["", [COMMON, *words]]}}


def features(value: str) -> frozenset[str]:
    """The features that such a tag names; words of later releases are none of ours."""
    return frozenset(value.split()) & frozenset(BY_FEATURE)


def listed(names: Collection[str]) -> list[str]:
    """Sort these features in the order of the parts."""
    return [part.feature for part in PARTS if part.feature in names]


def _holds(part: Part) -> dict[str, Any]:
    own = {"Fn::Equals": [{"Ref": part.parameter}, YES]}
    return {"Fn::And": [{"Condition": BY_FEATURE[part.needs].condition}, own]} if part.needs else own


def _if(feature: str, value: Any, otherwise: Any) -> Any:
    return {"Fn::If": [BY_FEATURE[feature].condition, value, otherwise]} if feature else value
