"""The tags of a cluster on its machines: in Cudo only these take any, as metadata. Those of nodes are among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stockyard.errors import VendorNotFound
from stockyard.ports import CloudWork, Outcome
from stockyard.providers.clouds.cudo import values
from stockyard.providers.clouds.cudo.client import Cudo
from stockyard.providers.clouds.cudo.marks import INSTALLATION, PREFIX, TENANT


def retag(cudo: Cudo, work: CloudWork, stale_keys: Sequence[str]) -> Outcome:
    """See ``ports.Retags.retag``."""
    digits = f"-{work.cluster.client_id.rpartition('-')[2]}-"
    changed = 0
    for vm in cudo.vms():
        is_ours = (vm.metadata.get(INSTALLATION), vm.metadata.get(TENANT)) == (work.installation, work.tenant)
        wanted_metadata = after(vm.metadata, work.cluster.tags, stale_keys)
        if not is_ours or digits not in vm.id or vm.state == values.ABSENT or wanted_metadata == dict(vm.metadata):
            continue
        try:
            cudo.set_metadata(vm.id, wanted_metadata)
        except VendorNotFound:
            continue
        changed += 1
    return Outcome(True, f"{changed} machines were given the cluster's tags.")


def after(metadata: Mapping[str, str], tags: Mapping[str, str], stale_keys: Sequence[str]) -> dict[str, str]:
    """The metadata with these tags and without the stale ones. What we set ourselves stays, whatever is named."""
    kept_metadata = {key: value for key, value in metadata.items() if key.startswith(PREFIX) or key not in stale_keys}
    return {**kept_metadata, **{key: value for key, value in tags.items() if not key.startswith(PREFIX)}}
