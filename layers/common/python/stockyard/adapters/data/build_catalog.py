"""Trim a list of EC2 instance types into the offline catalogue:

``python -m stockyard.adapters.data.build_catalog types.json 2026-07-20T13:44:30.000Z described.json.gz``

The input is a JSON list of objects: ``name``, ``od_usd_hour``, ``vcpu``, ``memory_mib``, ``arch`` (list), ``enis``,
``ipv4_per_eni``, ``allocatable`` (with ``pods``), ``us_east_1_zone_ids`` (list), ``gpus`` (list of ``name``,
``manufacturer``, ``count``, ``memory_mib``), ``current_generation``, ``bare_metal``, ``efa_interfaces``, each of them
optional but the name. The second argument is the moment of the prices. The third is a JSON object with the answer of
``DescribeInstanceTypes`` for each type, by its name. ``docs/data.md`` has the sources.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stockyard.adapters.aws_catalog import traits_of
from stockyard.adapters.catalog import traits_row

RATES = {
    "nat_gateway": 0.045,
    "nat_gateway_gb": 0.045,
    "network_load_balancer": 0.0225,
    "public_ipv4": 0.005,
    "gp3": 0.08,
    "ebs_snapshot": 0.05,
    "eks": 0.1,
    "eks_extended": 0.5,
    "efs": 0.3,
    "object_storage": 0.023,
}
"""USD in us-east-1, AWS's public price pages: hours, a GB through the NAT gateway, a GB and month of gp3, of snapshots,
of EFS's standard storage and of S3's. ``eks_extended`` is what is added to ``eks``."""


def trimmed(
    types: Sequence[Mapping[str, Any]], as_of: str, described: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """The document that ``stockyard.adapters.catalog`` reads. ``described`` has what EC2 says of types, by name.

    A type whose zones are not known is ``doubtful``; one whose size is not known is nothing else.
    """
    whole = [entry for entry in types if entry.get("vcpu") and entry.get("memory_mib") and entry.get("arch")]
    return {
        "region": "us-east-1",
        "as_of": as_of,
        "rates": RATES,
        "doubtful": sorted(entry["name"] for entry in types if not entry.get("us_east_1_zone_ids")),
        "instances": [_row(entry, described.get(entry["name"])) for entry in whole],
    }


def _row(entry: Mapping[str, Any], described: Mapping[str, Any] | None) -> list[Any]:
    architectures = entry["arch"]
    architecture = "x86_64" if "x86_64" in architectures else architectures[0]
    fixed = [entry["name"], entry["vcpu"], entry["memory_mib"], architecture]
    network = [_first_card_interfaces(entry), entry.get("ipv4_per_eni") or 0]
    gpus = [[gpu["name"], gpu["manufacturer"], gpu["count"], gpu["memory_mib"]] for gpu in entry.get("gpus") or ()]
    flags = (entry.get("current_generation") is False) | 2 * bool(entry.get("bare_metal"))
    traits = traits_row(traits_of(described) if described is not None else None)
    more = [gpus, flags, entry.get("efa_interfaces") or 0, traits]
    while more and not more[-1]:
        more.pop()
    return [*fixed, *network, entry.get("od_usd_hour"), *more]


def _first_card_interfaces(entry: Mapping[str, Any]) -> int:
    """The list counts the interfaces of all network cards, pods use the first card alone: see it by their number."""
    pods, addresses = (entry.get("allocatable") or {}).get("pods"), entry.get("ipv4_per_eni") or 0
    if pods and addresses > 1 and (pods - 2) % (addresses - 1) == 0:
        return int((pods - 2) // (addresses - 1))
    return int(entry.get("enis") or 0)


def main() -> None:
    """Read the input, write ``ec2_catalog.json.gz`` beside this module; the same input gives the same bytes."""
    parser = argparse.ArgumentParser(description="Trim a list of EC2 instance types into the offline catalogue.")
    parser.add_argument("types", type=Path)
    parser.add_argument("as_of")
    parser.add_argument("described", type=Path)
    options = parser.parse_args()
    described = json.loads(gzip.decompress(options.described.read_bytes()))
    document = trimmed(json.loads(options.types.read_text()), options.as_of, described)
    text = json.dumps(document, separators=(",", ":"))
    Path(__file__).with_name("ec2_catalog.json.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
