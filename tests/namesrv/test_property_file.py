"""RocketMQ's property files, as the servers read them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from rewindmq.protocol.config.property_file import (
    convert_properties,
    format_properties_file,
    parse_properties_file,
)
from rewindmq.protocol.errors import ConfigError
from rewindmq.protocol.remoting.process.property_loader import MAX_FILE_BYTES, load_properties


class SampleConfig(msgspec.Struct, rename="camel"):
    listen_port: Annotated[int, msgspec.Meta(ge=0, le=65_535)] = 9876
    order_message_enable: bool = False
    kv_config_path: str = ""


def pairs(text: str) -> list[tuple[str, str]]:
    return [(entry.key, entry.value) for entry in parse_properties_file(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\nb = 2 \n c:3\nd 4\n", [("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")]),
        ("# comment\n! too\n\n  # and this\na=1", [("a", "1")]),
        ("a=one \\\n   two\nb=1", [("a", "one two"), ("b", "1")]),
        ("a=x\\\\\nb=1", [("a", "x\\"), ("b", "1")]),
        ("path=C\\:\\\\tmp", [("path", "C:\\tmp")]),
        ("a=\\u00e9\\t.", [("a", "é\t.")]),
        ("empty=\r\nalone\r\n", [("empty", ""), ("alone", "")]),
        ("a=b=c:d", [("a", "b=c:d")]),
        ("a=1\\", [("a", "1")]),
    ],
)
def test_syntax_of_java_properties(text: str, expected: list[tuple[str, str]]) -> None:
    assert pairs(text) == expected


def test_values_take_the_type_of_their_field_and_unknown_keys_are_listed() -> None:
    entries = parse_properties_file(
        "listenPort=10\norderMessageEnable=true\nrocketmqHome=/x\nlistenPort=11\n"
    )
    loaded = convert_properties(SampleConfig, entries, "namesrv.conf")
    assert loaded.fields == {"listen_port": 11, "order_message_enable": True}
    assert loaded.unknown_keys == ["rocketmqHome"]


@pytest.mark.parametrize("value", ["abc", "70000", "-1", ""])
def test_bad_value_names_file_line_and_key(tmp_path: Path, value: str) -> None:
    path = tmp_path / "namesrv.conf"
    path.write_text(f"# first line\nlistenPort={value}\n")
    with pytest.raises(ConfigError) as caught:
        load_properties(SampleConfig, path)
    assert str(caught.value).startswith(f"{path}:2: listenPort = {value!r}: ")
    assert "\n" not in str(caught.value)


def test_unreadable_files_give_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        load_properties(SampleConfig, tmp_path / "missing")
    binary = tmp_path / "binary"
    binary.write_bytes(b"a=\xff\n")
    with pytest.raises(ConfigError, match="not UTF-8 at byte 2"):
        load_properties(SampleConfig, binary)
    large = tmp_path / "large"
    large.write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    with pytest.raises(ConfigError, match="larger than"):
        load_properties(SampleConfig, large)


@settings(derandomize=True, deadline=None)
@given(st.text(max_size=300))
def test_any_text_parses(text: str) -> None:
    assert all(entry.line >= 1 for entry in parse_properties_file(text))


@settings(derandomize=True, deadline=None)
@given(st.text(alphabet=st.characters(codec="utf-8")), st.text(alphabet=st.characters(codec="utf-8")))
@example("# no comment", "")
@example("a key: with = its own", "C:\\folder")
def test_what_is_written_reads_back(key: str, value: str) -> None:
    assume(key != "on")
    value = value.strip()
    assert pairs(format_properties_file({key: value, "on": True})) == [(key, value), ("on", "true")]
