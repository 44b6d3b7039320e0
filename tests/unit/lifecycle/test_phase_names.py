"""Phases that an operation on a subject may be in, for lists that are filtered by one."""

from __future__ import annotations

import pytest

from stockyard.lifecycle.phases import PROCEDURES, phase_names


@pytest.mark.parametrize("procedure", PROCEDURES.values(), ids=lambda procedure: procedure.workflow)
def test_each_phase_of_each_driver_is_among_the_names_of_its_subject(procedure):
    assert set(procedure.names) <= set(phase_names(procedure.subject))


def test_a_subject_has_no_phases_of_another():
    assert "launch" in phase_names("claim")
    assert "launch" not in phase_names("cluster")
    assert "network" not in phase_names("claim")


def test_the_names_are_in_order_and_each_is_there_once():
    names = phase_names("cluster")
    assert list(names) == sorted(set(names))
