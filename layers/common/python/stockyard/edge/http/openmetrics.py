"""The text of OpenMetrics 1.0 that Prometheus reads. Since all are gauges, the older text format says the same."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from stockyard.domain.gauges import Gauge, Sample
from stockyard.edge.http.content import Content

TEXT = "text/plain; version=0.0.4"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_ESCAPED = re.compile(r'["\\\n]')
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n"}


def content(gauges: Sequence[Gauge], samples: Iterable[Sample]) -> Content:
    """The samples as an answer, in the format that the caller prefers."""
    return Content.of(TEXT, exposition(gauges, samples).encode(), other_types=(OPENMETRICS,), private=True)


def exposition(gauges: Sequence[Gauge], samples: Iterable[Sample]) -> str:
    """The text: each family that has samples, with its type, unit and help."""
    families: dict[str, list[Sample]] = {gauge.name: [] for gauge in gauges}
    for sample in samples:
        families[sample.gauge].append(sample)
    lines = [line for gauge in gauges for line in _family(gauge, families[gauge.name])]
    return "\n".join([*lines, "# EOF", ""])


def _family(gauge: Gauge, samples: Sequence[Sample]) -> Iterator[str]:
    if not samples:
        return
    yield f"# TYPE {gauge.name} gauge"
    if gauge.unit is not None:
        yield f"# UNIT {gauge.name} {gauge.unit}"
    yield f"# HELP {gauge.name} {gauge.help}"
    for sample in samples:
        yield f"{gauge.name}{_labels(sample.labels)} {sample.value!r}"


def _labels(labels: Mapping[str, str]) -> str:
    pairs = (f'{name}="{_ESCAPED.sub(lambda match: _ESCAPES[match[0]], text)}"' for name, text in labels.items())
    return f"{{{','.join(pairs)}}}" if labels else ""
