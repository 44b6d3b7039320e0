"""Names on Cudo fit, whatever the cluster is called, and no two clusters share one."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from stockyard.domain.values.ids import client_id
from stockyard.providers.clouds.cudo.names import name
from stockyard.providers.clouds.cudo.values import ID

CLUSTER_NAMES = st.from_regex(re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,126}[A-Za-z0-9])?", re.ASCII), fullmatch=True)
PREFIXES = st.from_regex(re.compile(r"[a-z][a-z0-9]{0,6}", re.ASCII), fullmatch=True)
THINGS = st.sampled_from(["control-plane", "data", "network"])


@given(CLUSTER_NAMES, PREFIXES, THINGS)
def test_every_name_is_one_that_cudo_takes(cluster: str, prefix: str, thing: str) -> None:
    client = client_id("acme", "clu_01KDVJXQ80000000000000000A", cluster)
    thing_name = name(prefix, client, thing)
    assert ID.fullmatch(thing_name)
    assert thing_name.startswith(f"{prefix}-")
    assert thing_name.endswith(f"{client[-12:]}-{thing}")
    if len(f"{prefix}-{client}-{thing}") <= 63:
        assert thing_name == f"{prefix}-{client}-{thing}"
