"""Names that others choose become paths below one folder, or are refused."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindmq.protocol.names import MAX_NAME_BYTES, PathNameError, is_path_name, path_name, relative_path

names = st.one_of(
    st.text(max_size=300), st.sampled_from(["", ".", "..", "/", "../x", "a/../b", "\0", "\ud800"])
)


@given(st.lists(names, min_size=1, max_size=3))
def test_a_relative_path_stays_below_its_folder(parts: list[str]) -> None:
    try:
        path = PurePosixPath("/store", relative_path(*parts))
    except PathNameError:
        assert not all(map(is_path_name, parts))
    else:
        assert path.parts == ("/", "store", *parts)
        assert ".." not in path.parts


@given(names)
def test_a_path_name_for_any_text_is_one_name_and_printable(text: str) -> None:
    name = path_name(text)
    assert relative_path(name) == name
    assert name.isprintable()
    assert not name.startswith(".")


def test_a_usual_client_id_is_its_own_path_name() -> None:
    assert path_name("10.0.0.1@4711#99_x-y") == "10.0.0.1@4711#99_x-y"


@pytest.mark.parametrize(("length", "is_valid"), [(MAX_NAME_BYTES, True), (MAX_NAME_BYTES + 1, False)])
def test_a_name_has_as_many_bytes_as_a_file_system_permits(length: int, is_valid: bool) -> None:
    assert is_path_name("x" * length) is is_valid
    assert is_path_name("é" * (length // 2) + "x" * (length % 2)) is is_valid
