"""Frames and headers that no current client writes."""

from __future__ import annotations

import struct
from typing import Final

from tests.interop.bad_input import BadInput, request
from tools.interop.raw import frame

# 5.x needs 12 bytes to detect a connection's protocol, so only cases that test this are shorter.
_MORE: Final = b"\0" * 16
# The first bytes of a TLS 1.2 hello, and of an HTTP request.
TLS_HELLO: Final = bytes.fromhex("16030100c8010000c40303") + b"\0" * 194
_HTTP: Final = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


def _rocketmq_header(
    *, remark_length: int = 0, ext_length: int = 0, code: int = 105, ext: bytes = b""
) -> bytes:
    return struct.pack(">hBhiiii", code, 0, 401, 7, 0, remark_length, ext_length) + ext


def _entry(key: bytes, value: bytes) -> bytes:
    return struct.pack(">h", len(key)) + key + struct.pack(">i", len(value)) + value


def _binary(ext: bytes) -> bytes:
    return frame(_rocketmq_header(ext_length=len(ext), code=38, ext=ext), codec=1)


_BYTES: Final = {
    "a web browser": _HTTP,
    "a TLS hello": TLS_HELLO,
    "garbage": bytes(range(255, 128, -1)),
    "length 0": b"\0\0\0\0" + _MORE,
    "length 1": b"\0\0\0\1" + _MORE,
    "length 3": b"\0\0\0\3" + _MORE,
    "length -1": b"\xff\xff\xff\xff" + _MORE,
    "length of 16 MiB and 1": struct.pack(">I", (1 << 24) - 3) + _MORE,
    "a header longer than its frame": frame("{}" + " " * 20, header_length=100),
    "a header a byte longer than its frame": frame("{}" + " " * 20, header_length=23),
    "no header": frame("", b" " * 20),
    "type 3": frame('{"code":105,"opaque":7}', codec=3),
    "type 255": frame('{"code":105,"opaque":7}', codec=255),
    "a header that is no JSON": frame("nonsense nonsense"),
    "a header that ends early": frame('{"code":105,"opaque":7,"ext'),
    "a header that is a list": frame("[1,2,3,4,5,6,7,8,9]"),
    "a header that is null": frame("null            "),
    "a header that is a text": frame('"a text, as it were"'),
    "a header nested 10,000 deep": frame('{"code":105,"opaque":7,"x":' + "[" * 10_000 + "]" * 10_000 + "}"),
    "binary: a header too short": frame(b"\0" * 20, codec=1),
    "binary: the remark longer than the header": frame(_rocketmq_header(remark_length=1_000), codec=1),
    "binary: the ext fields longer than the header": frame(_rocketmq_header(ext_length=1_000), codec=1),
    "binary: an ext field longer than all": frame(
        _rocketmq_header(ext_length=9, ext=b"\0\1k\0\0\3\xe8vv"), codec=1
    ),
    "binary: an ext field of length -1": frame(
        _rocketmq_header(ext_length=9, ext=b"\0\1k\xff\xff\xff\xffvv"), codec=1
    ),
    "binary: a key of length -1": frame(_rocketmq_header(ext_length=9, ext=b"\xff\xff\0\0\0\1vvv"), codec=1),
    "binary: a topic twice": _binary(_entry(b"topic", b"Nowhere") + _entry(b"topic", b"Nobody")),
    "binary: an empty key": _binary(_entry(b"", b"x") + _entry(b"topic", b"Nobody")),
    "binary: no UTF-8": _binary(_entry(b"topic", b"\xff\xfe")),
    "binary: bytes behind the ext fields": frame(_rocketmq_header() + b"more", codec=1),
}

# Header texts of requests that no server handles.
_HEADERS: Final = {
    "no code": '{"opaque":7}',
    "code null": '{"code":null,"opaque":7}',
    "code as text": '{"code":"12345","opaque":7}',
    "code with a fraction": '{"code":12345.0,"opaque":7}',
    "code with an exponent": '{"code":1e3,"opaque":7}',
    "code in hex": '{"code":0x3039,"opaque":7}',
    "code beyond 32 bits": '{"code":99999999999,"opaque":7}',
    "code no number": '{"code":"send","opaque":7}',
    "code negative": '{"code":-5,"opaque":7}',
    "code true": '{"code":true,"opaque":7}',
    "opaque as text": '{"code":12345,"opaque":"7"}',
    "opaque negative": '{"code":12345,"opaque":-7}',
    "opaque null": '{"code":12345,"opaque":null}',
    "version as text": '{"code":12345,"opaque":7,"version":"401"}',
    "version beyond 32 bits": '{"code":12345,"opaque":7,"version":99999999999}',
    "flag as text": '{"code":12345,"opaque":7,"flag":"0"}',
    "flag with unknown bits": '{"code":12345,"opaque":7,"flag":252}',
    "an answer without a request": '{"code":0,"opaque":7,"flag":1}',
    "a oneway request": '{"code":105,"opaque":7,"flag":2}',
    "remark a number": '{"code":12345,"opaque":7,"remark":5}',
    "language unknown": '{"code":12345,"opaque":7,"language":"COBOL"}',
    "language in small letters": '{"code":12345,"opaque":7,"language":"java"}',
    "language a number": '{"code":12345,"opaque":7,"language":9}',
    "language an unassigned number": '{"code":12345,"opaque":7,"language":99}',
    "language null": '{"code":12345,"opaque":7,"language":null}',
    "single quotes": "{'code':12345,'opaque':7}",
    "bare member names": "{code:12345,opaque:7}",
    "a trailing comma": '{"code":12345,"opaque":7,}',
    "two commas": '{"code":12345,,"opaque":7}',
    "a comment": '{/* who */"code":12345,"opaque":7}',
    "a line comment": '{"code":12345,// who\n"opaque":7}',
    "a member twice": '{"code":10,"opaque":7,"code":12345}',
    "members in capitals": '{"CODE":12345,"OPAQUE":7}',
    "space everywhere": ' {\n"code" : 12345 ,\t"opaque": 7 } \r\n',
    "a byte order mark": '\ufeff{"code":12345,"opaque":7}',
    "a zero byte behind": '{"code":12345,"opaque":7}\0',
    "something behind": '{"code":12345,"opaque":7}}',
    "a class's name": '{"@type":"java.net.Inet4Address","code":12345,"opaque":7}',
    "an unknown member": '{"code":12345,"opaque":7,"hello":{"a":[1,2,{}]}}',
    "NaN": '{"code":12345,"opaque":7,"hello":NaN}',
    "ext fields a list": '{"code":12345,"opaque":7,"extFields":["a"]}',
    "ext fields a text": '{"code":12345,"opaque":7,"extFields":"a"}',
    "ext fields null": '{"code":12345,"opaque":7,"extFields":null}',
    "ext fields with a class's name": '{"code":12345,"opaque":7,"extFields":{"@type":"java.net.URL"}}',
}
_UNANSWERED: Final = ("an answer without a request", "a oneway request")
# Extension fields of GET_MAX_OFFSET (30).
_EXT_FIELDS: Final = {
    "numbers and texts": '{"topic":"TBW102","queueId":0}',
    "a text for a number with a sign": '{"topic":"TBW102","queueId":"+0"}',
    "true for a text": '{"topic":true,"queueId":0}',
    "null": '{"topic":null,"queueId":0}',
    "an object": '{"topic":{"a":1},"queueId":0}',
    "an array": '{"topic":["a"],"queueId":0}',
    "a fraction": '{"topic":"TBW102","queueId":0.5}',
    "NaN": '{"topic":"TBW102","queueId":NaN}',
    "a bare name": '{topic:"TBW102","queueId":"0"}',
    "a bare number for a name": '{1:"TBW102","topic":"TBW102","queueId":"0"}',
    "single quotes": "{'topic':'TBW102','queueId':'0'}",
    "a name twice": '{"topic":"Nowhere","topic":"TBW102","queueId":"9","queueId":"0"}',
    "an escaped name": '{"\\u0074opic":"TBW102","queueId":"0"}',
}


def _cases() -> list[BadInput]:
    cases = [BadInput(f"frame: {name}", "broker", (data,), is_quiet=True) for name, data in _BYTES.items()]
    cases += [
        BadInput(f"header: {name}", "broker", (frame(text),), is_quiet=name in _UNANSWERED)
        for name, text in _HEADERS.items()
    ]
    for name, text in _EXT_FIELDS.items():
        header = f'{{"code":30,"opaque":7,"version":401,"extFields":{text}}}'
        cases.append(BadInput(f"ext fields: {name}", "broker", (frame(header),)))
    for name in ("a TLS hello", "length -1", "no header", "a header that is no JSON"):
        cases.append(BadInput(f"frame to the name server: {name}", "namesrv", (_BYTES[name],), is_quiet=True))
    route = request(105, {"topic": "TBW102"})
    cases += [
        BadInput("frame: half, then the end", "broker", (route[: len(route) // 2],), ends=True),
        BadInput("frame: four bytes, then the end", "broker", (route[:4],), ends=True),
        BadInput("frame: nothing, then the end", "broker", (b"",), ends=True),
        BadInput("frame: a good one, half of another, the end", "namesrv", (route, route[:9]), ends=True),
        BadInput("frame: four zero bytes and no more", "broker", (b"\0\0\0\0",), is_quiet=True),
        BadInput("frame: in two pieces", "namesrv", (route[:15], route[15:]), is_quiet=True),
        BadInput("frame: a good one, a bad one", "namesrv", (route, _BYTES["type 255"])),
    ]
    return cases


FRAMES: Final = _cases()
