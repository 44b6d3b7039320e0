"""Text for Prometheus, read by the strict parser of its reference client."""

from __future__ import annotations

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as strictly
from prometheus_client.parser import text_string_to_metric_families as as_older_text

from stockyard.domain.gauges import GAUGES, Gauge, Sample
from stockyard.edge.http.content import preferred
from stockyard.edge.http.openmetrics import OPENMETRICS, TEXT, content, exposition, written

ODD = 'a "quoted" name, with \\ and\na new line'
PLAIN = Gauge("x_things", "Things.", ("name",))
PRICE = Gauge("x_price_usd", "A price.", (), "usd")
PROMETHEUS = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;"
    "q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
"""What Prometheus sends by default."""


@pytest.mark.parametrize("parse", [strictly, as_older_text])
def test_parsers_read_what_was_written(parse) -> None:
    samples = [Sample("x_price_usd", 0.1), Sample("x_things", 3, {"name": ODD}), Sample("x_things", 1e-07)]
    things, price = parse(exposition((PLAIN, PRICE), samples))
    assert [(sample.labels, sample.value) for sample in things.samples] == [({"name": ODD}, 3.0), ({}, 1e-07)]
    assert [(price.name, price.type, price.documentation)] == [("x_price_usd", "gauge", "A price.")]
    assert [sample.value for sample in price.samples] == [0.1]


def test_the_strict_parser_takes_each_family_and_none() -> None:
    text = exposition(GAUGES, [Sample(gauge.name, 0, dict.fromkeys(gauge.labels, "x")) for gauge in GAUGES])
    families = {family.name: (family.unit, family.documentation) for family in strictly(text)}
    assert families == {gauge.name: (gauge.unit or "", gauge.help) for gauge in GAUGES}
    assert list(strictly(exposition(GAUGES, []))) == []


@pytest.mark.parametrize(
    ("accept", "media"),
    [
        ("", TEXT),
        ("*/*", TEXT),
        (PROMETHEUS, OPENMETRICS),
        ("text/plain;version=0.0.4;q=0.3, application/openmetrics-text;version=1.0.0;q=0.2", TEXT),
        ("application/openmetrics-text; version=1.0.0", OPENMETRICS),
        ("application/openmetrics-text", OPENMETRICS),
        ("application/*, text/plain;q=0.1", OPENMETRICS),
        ("application/openmetrics-text; version=0.0.1", TEXT),
        ("text/html, application/xml;q=0.9", TEXT),
        ("application/openmetrics-text;q=x, text/plain;q=0.9", OPENMETRICS),
    ],
)
def test_the_type_is_what_the_caller_prefers(accept: str, media: str) -> None:
    assert preferred(accept, (TEXT, OPENMETRICS)) == media
    status, headers, body, is_encoded = content(written([])).answer({"headers": {"accept": accept}})
    assert (status, body, is_encoded) == (200, "# EOF\n", False)
    assert headers["Content-Type"] == (OPENMETRICS if media == OPENMETRICS else f"{TEXT}; charset=utf-8")
    assert (headers["Cache-Control"], headers["Vary"]) == ("no-store", "Accept, Accept-Encoding")
