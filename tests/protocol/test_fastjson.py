"""fastjson's departures from JSON, written and read (docs/spec/protocol.md 5, 5.5)."""

import math
import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindmq.protocol.codec import fastjson
from rewindmq.protocol.codec.fastjson_scanner import scan
from rewindmq.protocol.errors import BodyError
from rewindmq.protocol.limits import MAX_BODY_DEPTH
from rewindmq.protocol.message_queue import MessageQueue

QUEUE = MessageQueue("T", "b", 0)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{0:"a",1:"b"}', {0: "a", 1: "b"}),
        ('{"brokerAddrs":{-1 : "x" , }}', {"brokerAddrs": {-1: "x"}}),
        ('{{"brokerName":"b","queueId":0,"topic":"T"}:100}', {QUEUE: 100}),
        ('{ { "topic" : "T", "queueId":0 ,"brokerName":"b","more":[1]} : 100 }', {QUEUE: 100}),
        ("{{topic:'T',queueId:0,brokerName:'b'}:-1,}", {QUEUE: -1}),
        ("{offsetTable:{},$x_1:null}", {"offsetTable": {}, "$x_1": None}),
        ("['a',\"b\",]", ["a", "b"]),
        (r"""{'it\'s':"\"\\\/\b\f\n\r\t\u6807"}""", {"it's": '"\\/\b\f\n\r\t标'}),
        (r"'\ud83d\ude00'", "😀"),
        (r"'\ud83d'", "\ufffd"),
        ("{a:1,a:2}", {"a": 2}),
        ("{a:1.5,b:-2e3,c:true,d:false}", {"a": 1.5, "b": -2000.0, "c": True, "d": False}),
        ("\ufeff{a:[ ]}", {"a": []}),
        ("{0:7,1:4\n\t\t}", {0: 7, 1: 4}),
        # Forms that 4.9.7 does not write, but was seen to read.
        ("{a:NaN,b:[NaN,1]}", {"a": None, "b": [None, 1]}),
        ("{,,a:1,,b:[,1,,2,,],,}", {"a": 1, "b": [1, 2]}),
        ("/* who */{/**/a:/* what */1}", {"a": 1}),
        ("{// who\n'a':1// and so on\n}//", {"a": 1}),
        ("{'a':1}\0", {"a": 1}),
        ("{'a':\f1\b}", {"a": 1}),
        ("{ {'b' : [2]} :1}", {"{'b' : [2]}": 1}),
    ],
)
def test_the_tolerant_reader_takes_what_fastjson_does(text: str, value: Any) -> None:
    assert fastjson.loads(text) == value
    assert fastjson.loads(text.encode()) == value


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "{", "}", "[1", "{a:1", "{a}", "{a:}", "{:1}", "[1 2]", "{a:1}x",
        "'a", '"a\\', '"a\\x"', '"\\u12"', "NaN1", "{NaN}", "{a:Infinity}", "{a:-NaN}", "{a:undefined}",
        "{a:nul}", "01x", "{a:1e999}", "{a:1.}", "{1a:2}", "{{:1}", "{{a:1}1}", "{[1]:1}",
        "{a:" + "9" * 5000 + "}", "{a:--1}", "/* 1", "1/", "{/a:1}",
    ],
)  # fmt: skip
def test_what_is_neither_is_a_body_error(text: str) -> None:
    with pytest.raises(BodyError) as refusal:
        fastjson.loads(text)
    assert refusal.value.code == 1
    assert refusal.value.remark.startswith("JSON body: ")


@pytest.mark.parametrize("data", [b"\xff", b"{a:'\xff'}", b'{"a":"\xff"}', b'"\xc3"'])
def test_bytes_that_are_no_utf8_are_a_body_error(data: bytes) -> None:
    with pytest.raises(BodyError):
        fastjson.loads(data)


@pytest.mark.parametrize("blank", [" ", "\n", "/**/", "//\n"])
def test_blanks_and_comments_take_no_memory_to_pass_over(blank: str) -> None:
    text = f"{{a:{blank * 20_000}1}}"
    tracemalloc.start()
    try:
        assert fastjson.loads(text) == {"a": 1}
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 500_000


@pytest.mark.parametrize("opening", ["[", '{"a":', "{a:", "{{"])
@pytest.mark.parametrize("levels", [MAX_BODY_DEPTH + 1, 500, 100_000])
def test_nesting_without_end_is_a_body_error(opening: str, levels: int) -> None:
    closing = {"[": "]", '{"a":': "}", "{a:": "}", "{{": ""}[opening]
    with pytest.raises(BodyError):
        fastjson.loads(opening * levels + "1" + closing * levels)


def test_nesting_up_to_the_limit_is_read_by_both_readers() -> None:
    strict = "[" * MAX_BODY_DEPTH + "]" * MAX_BODY_DEPTH
    tolerant = "[" * MAX_BODY_DEPTH + "'a'" + "]" * MAX_BODY_DEPTH
    assert fastjson.loads(strict) == msgspec.json.decode(strict)
    assert fastjson.is_deeper_than(fastjson.loads(tolerant), MAX_BODY_DEPTH - 1)


PLAIN_TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = PLAIN_TEXT | NUMBERS | st.booleans()
QUEUES = st.builds(MessageQueue, PLAIN_TEXT, PLAIN_TEXT, st.integers(-(2**31), 2**31 - 1))


def tables(children: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[Any, Any]]:
    integers = st.integers(-(2**31), 2**31 - 1)
    return st.one_of(
        *[st.dictionaries(keys, children, max_size=4) for keys in (PLAIN_TEXT, integers, QUEUES)]
    )


VALUES = st.recursive(
    SCALARS, lambda children: st.lists(children, max_size=4) | tables(children), max_leaves=12
)


@given(value=VALUES)
def test_what_is_written_is_read_back(value: Any) -> None:
    assert fastjson.loads(fastjson.dumps(value)) == value


@given(value=VALUES)
def test_the_strict_form_is_ascii_json_that_any_parser_reads(value: Any) -> None:
    text = fastjson.dumps(value, standard=True)
    assert text.isascii()
    msgspec.json.decode(text)


@given(value=st.recursive(SCALARS, lambda c: st.lists(c) | st.dictionaries(PLAIN_TEXT, c), max_leaves=12))
def test_the_tolerant_scanner_agrees_with_strict_json(value: Any) -> None:
    assert scan(msgspec.json.encode(value).decode()) == value


@given(text=st.text(st.sampled_from("{}[]:,'\"\\u0a1-.e \n"), max_size=40))
def test_nonsense_is_a_value_or_a_body_error(text: str) -> None:
    try:
        value = fastjson.loads(text)
    except BodyError:
        return
    assert text.strip()
    assert fastjson.dumps(value)


def test_written_form() -> None:
    value = {
        "b": [1, True, None],
        "a": {10: "x", 2: "标"},
        "n": None,
        "t": {MessageQueue("T", "b", 1): 2, QUEUE: 1},
    }
    assert fastjson.dumps(value) == (
        '{"a":{2:"标",10:"x"},"b":[1,true,null],"t":{{"brokerName":"b","queueId":0,"topic":"T"}:1,'
        '{"brokerName":"b","queueId":1,"topic":"T"}:2}}'
    )
    assert fastjson.dumps(value["a"], standard=True) == '{"2":"\\u6807","10":"x"}'
    assert fastjson.dumps("😀", standard=True) == '"\\uD83D\\uDE00"'
    assert fastjson.dumps({}) == "{}"
    assert fastjson.dumps([]) == "[]"


def test_keys_of_several_kinds_are_written_kind_by_kind() -> None:
    text = '{{"brokerName":"b","queueId":0,"topic":"T"}:1,2:3,"a":4,"b":5}'
    assert fastjson.dumps(fastjson.loads(text)) == text


def test_floats_that_are_not_finite_are_written_as_fastjson_writes_them() -> None:
    assert fastjson.dumps({"a": math.nan, "b": 1.5, "c": [math.inf]}) == '{"b":1.5,"c":[null]}'


def test_a_lone_surrogate_is_a_body_error() -> None:
    with pytest.raises(BodyError):
        fastjson.dumps({"a": "\ud800"})
