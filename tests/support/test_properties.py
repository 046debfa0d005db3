"""The examples of property tests do not depend on what else was imported."""

from __future__ import annotations

from hypothesis.internal.conjecture import providers

from tests.support import properties


def test_no_constant_of_a_loaded_module_is_drawn() -> None:
    properties.settle()
    constants = providers._get_local_constants()
    assert not (*constants.integers, *constants.floats, *constants.bytes, *constants.strings)
