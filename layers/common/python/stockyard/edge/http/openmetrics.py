"""The text of OpenMetrics 1.0 that Prometheus reads. Since all are gauges, the older text format says the same."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from stockyard.domain.gauges import GAUGES, Gauge, Sample
from stockyard.edge.http.content import Content, compressed

TEXT = "text/plain; version=0.0.4"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_ESCAPED = re.compile(r'["\\\n]')
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n"}


def content(data: bytes) -> Content:
    """The text, by ``written``, as an answer in the format that the caller prefers."""
    return Content.of_compressed(TEXT, data, other_types=(OPENMETRICS,))


def written(samples: Iterable[Sample]) -> bytes:
    """The samples of all families as compressed text."""
    return compressed(exposition(GAUGES, samples).encode())


def exposition(gauges: Sequence[Gauge], samples: Iterable[Sample]) -> str:
    """The text: each family that has samples, with its type, unit and help."""
    families: dict[str, list[Sample]] = {gauge.name: [] for gauge in gauges}
    for sample in samples:
        families[sample.gauge].append(sample)
    texts: dict[tuple[str, str], str] = {}
    lines = [line for gauge in gauges for line in _family(gauge, families[gauge.name], texts)]
    return "\n".join([*lines, "# EOF", ""])


def _family(gauge: Gauge, samples: Sequence[Sample], texts: dict[tuple[str, str], str]) -> Iterator[str]:
    if not samples:
        return
    yield f"# TYPE {gauge.name} gauge"
    if gauge.unit is not None:
        yield f"# UNIT {gauge.name} {gauge.unit}"
    yield f"# HELP {gauge.name} {gauge.help}"
    for sample in samples:
        yield f"{gauge.name}{_labels(sample.labels, texts)} {sample.value!r}"


def _labels(labels: Mapping[str, str], texts: dict[tuple[str, str], str]) -> str:
    """The labels in braces. ``texts`` are pairs that were written before: most stand in many samples."""
    if not labels:
        return ""
    pairs = []
    for pair in labels.items():
        if pair not in texts:
            texts[pair] = f'{pair[0]}="{_ESCAPED.sub(lambda match: _ESCAPES[match[0]], pair[1])}"'
        pairs.append(texts[pair])
    return f"{{{','.join(pairs)}}}"
