"""The algebra of requirements: its laws on all combinations, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockyard.domain.values.requirements import LARGEST, SMALLEST, ZONE, Requirement, Requirements, integer, normal_key

VALUES = ("1", "2", "3", "5", "x", "")
listed = st.lists(st.sampled_from(VALUES), min_size=1, max_size=4)
numbers = st.integers(0, 6).map(str)
least = st.none() | st.integers(1, 50)
plain = st.one_of(
    st.builds(Requirement.of, st.sampled_from(["In", "NotIn"]), listed, least),
    st.builds(Requirement.of, st.sampled_from(["Exists", "DoesNotExist", "NotExists"]), st.just(()), least),
    st.builds(Requirement.of, st.sampled_from(["Gt", "Gte", "Lt", "Lte"]), st.tuples(numbers), least),
)
requirements = st.one_of(plain, st.builds(Requirement.intersection, plain, plain))


@given(requirements, requirements, st.sampled_from([*VALUES, "4", "y"]))
def test_intersection_has_values_of_both(first, second, value):
    assert first.intersection(second).has(value) == (first.has(value) and second.has(value))


@given(requirements, requirements, requirements)
def test_intersection_is_a_lattice(a, b, c):
    assert a.intersection(b) == b.intersection(a)
    assert a.intersection(b).intersection(c) == a.intersection(b.intersection(c))
    assert a.intersection(a) == a


@given(requirements)
def test_intersection_with_everything_and_with_nothing(requirement):
    assert requirement.intersection(Requirement.of("Exists")) == requirement
    assert requirement.intersection(Requirement.of("DoesNotExist")).empty


@given(requirements)
def test_empty_requirement_has_no_value(requirement):
    assert not (requirement.empty and any(requirement.has(value) for value in VALUES))
    assert requirement.empty == (requirement.operator == "DoesNotExist")
    assert requirement.absence_fits == (requirement.operator in ("NotIn", "DoesNotExist"))


@given(requirements)
def test_requirement_entries_round_trip(requirement):
    again = Requirements.of(requirement.entries("size"))["size"]
    exclusions_lost = requirement.bounded and requirement.complement
    assert again == (
        Requirement(True, frozenset(), requirement.gte, requirement.lte, requirement.min_values)
        if exclusions_lost
        else requirement
    )


@given(requirements, requirements)
def test_overlaps_is_symmetric(first, second):
    assert first.overlaps(second) == second.overlaps(first)


@pytest.mark.parametrize(
    ("operator", "values", "words"),
    [
        ("In", [], "In needs at least one value"),
        ("NotIn", [], "NotIn needs at least one value"),
        ("Exists", ["a"], "Exists takes no values"),
        ("DoesNotExist", ["a"], "DoesNotExist takes no values"),
        ("Gt", [], "Gt needs exactly one integer"),
        ("Lt", ["1", "2"], "Lt needs exactly one integer"),
        ("Gte", ["1.5"], "Gte needs exactly one integer"),
        ("Lte", [str(2**63)], "Lte needs exactly one integer"),
        ("in", ["a"], "the operator 'in' is not known"),
        ("In", [None], "a value is a text"),
        ("In", [True], "a value is a text"),
    ],
)
def test_requirement_refuses_operator_with_wrong_values(operator, values, words):
    with pytest.raises(ValueError, match=words):
        Requirement.of(operator, values)


@pytest.mark.parametrize("wrong", [0, 51, -1, True, "2", 1.0])
def test_min_values_is_from_1_to_50(wrong):
    with pytest.raises(ValueError, match="minValues is an integer from 1 to 50"):
        Requirement.of("Exists", (), wrong)


def test_bound_beyond_largest_integer_is_empty():
    assert Requirement.of("Gt", [str(LARGEST)]).operator == "DoesNotExist"
    assert Requirement.of("Lt", [str(SMALLEST)], 2) == Requirement(False, frozenset(), None, None, 2)
    assert Requirement.of("Gte", [str(LARGEST)]).has(str(LARGEST))


@pytest.mark.parametrize("text", ["", "+", "-", "1.0", " 1", "1_0", "٣", "a", str(2**63), "9" * 5000])
def test_integer_returns_none_for_other_text(text):
    assert integer(text) is None


def test_integer_reads_64_bit_integers():
    assert [integer(text) for text in ("007", "+7", "-7", str(LARGEST))] == [7, 7, -7, LARGEST]


def test_requirements_accept_all_spellings_of_entries():
    read_requirements = Requirements.of(
        [
            {"property": "team", "value": "a"},
            {"key": "beta.kubernetes.io/arch", "operator": "In", "values": ["arm64", "amd64"]},
            {"key": "kubernetes.io/arch", "operator": "NotIn", "values": ["arm64"]},
            {"key": "size", "operator": "Gt", "values": [4]},
            {"key": "gone", "operator": "NotExists", "minValues": None},
            {"key": "team", "operator": None, "values": ["a", "b"], "minValues": 2},
        ]
    )
    assert dict(read_requirements) == {
        "team": Requirement(False, frozenset("a"), None, None, 2),
        "kubernetes.io/arch": Requirement(False, frozenset({"amd64"})),
        "size": Requirement(True, frozenset(), 5),
        "gone": Requirement(False),
    }


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"operator": "Exists"}, "a requirement needs a key"),
        ({"key": "", "operator": "Exists"}, "a requirement needs a key"),
        ({"key": 1, "operator": "In", "values": ["a"]}, "a requirement needs a key"),
        ({"key": ["a"], "operator": "In", "values": ["a"]}, "a requirement needs a key"),
        ({"key": "a", "property": "b"}, "a: give key or property, not both"),
        ({"key": "a", "value": "b", "values": ["c"]}, "a: give value or values, not both"),
        ({"key": "a", "operator": "In", "values": "bc"}, "a: values is a list"),
        ({"key": "a", "operator": ["In"], "values": ["b"]}, "a: values is a list, operator a text"),
        ({"key": "a", "operator": "In", "values": [["b"]]}, "a: a value is a text"),
        ({"key": "a"}, "a: In needs at least one value"),
        ({"key": "a", "operator": "Gt", "values": ["b"], "minValues": 1}, "a: Gt needs exactly one integer"),
    ],
)
def test_requirements_error_names_key(entry, words):
    for memory in (None, {}):
        with pytest.raises(ValueError, match=words):
            Requirements.of([entry], memory)


@given(
    st.lists(
        st.fixed_dictionaries(
            {"key": st.sampled_from("ab"), "operator": st.sampled_from(["In", "NotIn", "Gt", "Exists"])},
            optional={"values": st.lists(st.sampled_from("12"), max_size=2), "minValues": st.integers(1, 2)},
        ),
        max_size=6,
    )
)
def test_requirements_memory_does_not_change_results(entries):
    memory: dict[Any, Any] = {}
    for some_entries in ([], *([entry] for entry in entries), entries):
        try:
            fresh = Requirements.of(some_entries)
        except ValueError as refused:
            with pytest.raises(ValueError, match="^" + str(refused)[:5]):
                Requirements.of(some_entries, memory)
        else:
            assert Requirements.of(some_entries, memory) == fresh


def test_requirements_compare_by_value():
    first = Requirements.of([{"key": "a", "values": ["x", "y"]}, {"key": "b", "operator": "Exists"}])
    second = Requirements.of([{"key": "b", "operator": "Exists"}, {"key": "a", "values": ["y", "x"]}])
    assert first == second
    assert first != Requirements()


def test_requirements_of_two_spellings_of_a_key_intersect():
    entries = [
        {"key": ZONE, "values": ["a", "b"]},
        {"key": "failure-domain.beta.kubernetes.io/zone", "operator": "NotIn", "values": ["a"]},
    ]
    assert Requirements.of(entries) == {ZONE: Requirement.of("In", ["b"])}


@pytest.mark.parametrize(
    ("key", "normal"),
    [
        ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
        ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
        ("topology.ebs.csi.aws.com/zone", ZONE),
        ("topology.gke.io/zone", ZONE),
        ("topology.disk.csi.azure.com/zone", ZONE),
        ("topology.csi.vmware.com/k8s-region", "topology.kubernetes.io/region"),
        ("topology.hostpath.csi/node", "topology.hostpath.csi/node"),
        ("topology.example.com/zone", "topology.example.com/zone"),
        ("topology.k8s.aws/zone-id", "topology.k8s.aws/zone-id"),
        ("csi.example.com/zone", "csi.example.com/zone"),
    ],
)
def test_a_label_has_one_key_however_it_is_spelt(key, normal):
    assert normal_key(key) == normal
    assert list(Requirements.of([{"key": key, "values": ["a"]}])) == [normal]
