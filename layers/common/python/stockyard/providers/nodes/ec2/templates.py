"""The launch template of a pool: what its machines have in common, so that a launch names only types and subnets.

It belongs to the cluster's environment and holds no secret. One whose content is out of date is made anew.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stockyard.domain.nodes.node_types import SPOT
from stockyard.errors import NotYetVisible, VendorError, VendorRefused
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.catalog import images
from stockyard.providers.clouds.aws.catalog.reserved import DISK_GIB
from stockyard.providers.clouds.aws.errors import DUPLICATE
from stockyard.providers.clouds.aws.kinds import ec2 as ec2_kinds
from stockyard.providers.clouds.aws.kinds.base import TaggedThing
from stockyard.providers.nodes.ec2.node_class import NodeClass

_KIND = ec2_kinds.LAUNCH_TEMPLATE
CONTENT = "stockyard:content"
"""The tag that says which content a template has."""
LONGEST = 128
"""Characters of a template's name."""
Look = Callable[[], TaggedThing | None]
"""What a look has found; raises what the look has raised."""
OF_INSTANCES, OF_SPOT = "network-interface", "spot-instances-request"
"""What a launch makes besides and a fleet cannot tag itself; the second is refused where the launch is not for spot."""


def label_of(pool: str, capacity_type: str, offered: Sequence[str]) -> str:
    """The pool's name; where a provider offers both capacity types, spot has a template of its own."""
    return f"{pool}-{SPOT}" if capacity_type == SPOT and len(offered) > 1 else pool


@dataclass(frozen=True, slots=True)
class TemplateRequest:
    """One pool's template. ``provider`` tells apart what two providers of one cluster have for pools of one name.

    ``label`` is the pool's name, see :func:`label_of`.
    """

    owner: tags.Owner
    label: str
    provider: str
    spot: bool
    node_class: NodeClass
    user_data: bytes
    since: str
    key_pair: str = ""
    disk_gib: int = DISK_GIB
    volume_key: str = ""
    """The ARN of the key of its disks; empty for the account's default one."""
    reads_tags: bool = True
    """Whether a machine may read its tags. EC2 refuses that for one with a slash in a tag's key."""

    def names(self) -> tuple[str, str]:
        """The name, and the one that is taken when another provider of the cluster has that."""
        return first_name(self.owner, self.label), first_name(self.owner, f"{self.label}-{self.provider}")


@dataclass(frozen=True, slots=True)
class Template:
    """A template that is there. ``fresh``: made just now, so that AWS may not know it everywhere yet."""

    name: str
    fresh: bool


def first_name(owner: tags.Owner, label: str) -> str:
    """The name that a template of the label has first."""
    return _short(f"{owner.prefix}-{owner.client_id}-{label}")


def find(calls: Calls, name: str) -> TaggedThing | None:
    """The template of that name, whoever's it is; None when there is none."""
    return next(iter(_KIND.search(calls, {}, name)), None)


def ensure(calls: Calls, request: TemplateRequest, looks: Mapping[str, Look] | None = None) -> Template:
    """Make the template, or find it. Run twice, or by two at once, there is one. ``looks`` have just been made, by
    name."""
    data = _data(request)
    # Tags of the cluster's owner are part of it: what is made by the template carries them.
    own_tags = [dict(request.owner.own_tags)] if request.owner.own_tags else []
    parts = json.dumps([data, request.spot, *own_tags], sort_keys=True)
    content = hashlib.sha256(parts.encode()).hexdigest()[:32]
    owner_tags = tags.of_owner(request.owner)
    for name in request.names():
        template = looks[name]() if looks and name in looks else find(calls, name)
        if template is not None and not tags.carries(template.tags, owner_tags):
            continue
        if template is not None and template.tags.get(CONTENT) == content:
            return Template(name, fresh=False)
        if template is not None:
            _KIND.delete(calls, template.vendor_id)
        _make(calls, request, name, content, data)
        return Template(name, fresh=True)
    raise VendorRefused(
        f"launch templates {' and '.join(request.names())} are not ours",
        hint="Rename or remove them in the AWS account.",
    )


def remove(calls: Calls, owner: tags.Owner) -> list[str]:
    """Delete every template of an environment. Ids of those that were still there."""
    template_ids = [template.vendor_id for template in _KIND.search(calls, tags.of_owner(owner), None)]
    for template in template_ids:
        _KIND.delete(calls, template)
    return template_ids


def is_found(calls: Calls, owner: tags.Owner, label: str) -> bool:
    """Whether a search finds the pool's template, so that one for deletion would."""
    return bool(_KIND.search(calls, tags.of_key(owner, _KIND.name, label), None))


def _make(calls: Calls, request: TemplateRequest, name: str, content: str, data: dict[str, Any]) -> None:
    marks = {**tags.full(request.owner, _KIND.name, request.label, name, request.since), CONTENT: content}
    # They carry the environment's tags: what is made here lives and dies with its instance, which has the claim's.
    of_parts = tags.specification([OF_INSTANCES, OF_SPOT] if request.spot else [OF_INSTANCES], marks)
    try:
        calls.call(
            "ec2",
            "create_launch_template",
            LaunchTemplateName=name,
            LaunchTemplateData={**data, "TagSpecifications": of_parts},
            TagSpecifications=tags.specification(["launch-template"], marks),
        )
    except VendorError as error:
        if DUPLICATE.fullmatch(error.code):
            # Another worker was first, and the next look finds what it made. Without the code: it is not the machine
            # that exists already.
            raise NotYetVisible(f"launch template {name} exists and is not shown yet") from error
        raise


def _data(request: TemplateRequest) -> dict[str, Any]:
    node_class = request.node_class
    return {
        "ImageId": next(iter(node_class.images.values())),
        "IamInstanceProfile": {"Name": node_class.instance_profile},
        "SecurityGroupIds": list(node_class.security_groups),
        "BlockDeviceMappings": [images.root_volume(node_class.root_device, request.disk_gib, request.volume_key)],
        # The machine reads there which claim it is; such an instance has no tag with a slash in its key.
        "MetadataOptions": {
            **images.METADATA,
            "InstanceMetadataTags": "enabled" if request.reads_tags else "disabled",
        },
        **({"KeyName": request.key_pair} if request.key_pair else {}),
        "UserData": base64.b64encode(request.user_data).decode(),
    }


def _short(name: str) -> str:
    if len(name) <= LONGEST:
        return name
    return f"{name[: LONGEST - 13]}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"
