"""Files that are served as they are."""

from __future__ import annotations

import base64
import gzip

import pytest

from stockyard.edge.contract import Answer
from stockyard.edge.http.content import Content

TEXT = "<p>Größe</p>" * 50
PAGE = Content.of("text/html", TEXT.encode(), {"X-Own": "1"})


@pytest.fixture
def get(world, make_event):
    """Asks for the file, with header fields of the caller."""
    route = world.http.route(
        "GET /v1/docs",
        summary="Page",
        action="GetPage",
        open_because="A page.",
        answers={200: None},
        media="text/html",
    )
    route(lambda _: Answer(200, content=PAGE))

    def call(**headers):
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        return world.http.handle(make_event("GET", "/v1/docs", claims=None, headers=fields), None)

    return call


def test_a_file_comes_with_its_type_its_tag_and_its_own_header_fields(get):
    answer = get()
    assert (answer["statusCode"], answer["body"], answer["isBase64Encoded"]) == (200, TEXT, False)
    assert answer["headers"] == {
        "X-Own": "1",
        "Cache-Control": "no-cache",
        "ETag": PAGE.tag,
        "Vary": "Accept-Encoding",
        "X-Content-Type-Options": "nosniff",
        "Content-Type": "text/html; charset=utf-8",
    }


@pytest.mark.parametrize(
    ("accepted", "is_compressed"),
    [
        ("gzip", True),
        ("GZIP", True),
        ("deflate, gzip;q=0.5, br", True),
        ("*", True),
        ("gzip;q=0", False),
        ("gzip; q=0.000, *", False),
        ("identity", False),
        ("br", False),
        ("*;q=0", False),
        ("", False),
    ],
)
def test_a_file_is_compressed_to_who_takes_that(get, accepted, is_compressed):
    answer = get(accept_encoding=accepted)
    assert answer["isBase64Encoded"] is is_compressed
    assert answer["headers"].get("Content-Encoding") == ("gzip" if is_compressed else None)
    text = gzip.decompress(base64.b64decode(answer["body"])).decode() if is_compressed else answer["body"]
    assert text == TEXT


@pytest.mark.parametrize("named", [PAGE.tag, PAGE.tag.removeprefix("W/"), f'"x", {PAGE.tag}', "*"])
def test_who_has_the_file_is_not_sent_it_again(get, named):
    answer = get(if_none_match=named, accept_encoding="gzip")
    assert (answer["statusCode"], answer["body"], answer["isBase64Encoded"]) == (304, "", False)
    assert answer["headers"]["ETag"] == PAGE.tag
    assert "Content-Type" not in answer["headers"]


def test_who_has_another_file_is_sent_this_one(get):
    assert get(if_none_match='W/"0"')["statusCode"] == 200


def test_the_tag_changes_with_the_file_alone():
    assert Content.of("text/html", TEXT.encode()).tag == PAGE.tag
    assert Content.of("text/html", b"other").tag != PAGE.tag


def test_a_file_still_refuses_unknown_query_parameters(world, make_event, get):
    refused = world.http.handle({**make_event("GET", "/v1/docs", claims=None), "rawQueryString": "x=1"}, None)
    assert refused["statusCode"] == 422
