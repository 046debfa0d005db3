"""Frames for the twins: plain sends and pulls, others that divert, other requests and hostile headers."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final

from hypothesis import strategies as st

from rewindmq.protocol.body.heartbeat import ConsumerData, HeartbeatData
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.frame import PREFIX_BYTES, encode_frame
from rewindmq.protocol.header.admin import CreateTopicRequestHeader, DeleteTopicRequestHeader
from rewindmq.protocol.header.offset import UpdateConsumerOffsetRequestHeader
from rewindmq.protocol.header.pull import PullMessageRequestHeader
from rewindmq.protocol.header.reset import ResetOffsetRequestHeader
from rewindmq.protocol.header.send import SendMessageRequestHeader, SendMessageRequestHeaderV2
from rewindmq.protocol.message.sysflag import PullSysFlag
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.protocol.subscription import build_subscription_data
from rewindmq.protocol.version import LanguageCode

KINDS: Final = tuple(SerializeType)
PLAIN: Final = "UNIQ_KEY\x01FD0000000000000000000000000002658A\x02WAIT\x01true\x02TAGS\x01TagA"


def frame(command: RemotingCommand, kind: SerializeType = SerializeType.JSON) -> bytes:
    command.language = LanguageCode.JAVA
    return encode_frame(command, kind)


def send(
    topic: str = "T",
    queue_id: int = 0,
    body: bytes = b"hello",
    properties: str | None = PLAIN,
    *,
    kind: SerializeType = SerializeType.JSON,
    code: int = RequestCode.SEND_MESSAGE_V2,
    opaque: int = 7,
    flag: int = 0,
    **fields: Any,
) -> bytes:
    """A send as Java's client writes it, unless fields say otherwise."""
    defaults: dict[str, Any] = {
        "producer_group": "PG",
        "default_topic": "TBW102",
        "default_topic_queue_nums": 4,
        "sys_flag": 0,
        "born_timestamp": 1_795_323_546_451,
        "flag": 0,
        "reconsume_times": 0,
        "unit_mode": False,
        "broker_name": "broker-a",
    }
    is_long = code == RequestCode.SEND_MESSAGE
    header = (SendMessageRequestHeader if is_long else SendMessageRequestHeaderV2)(
        topic=topic, queue_id=queue_id, properties=properties, **{**defaults, **fields}
    )
    return frame(RemotingCommand(code, header, body, opaque=opaque, flag=flag), kind)


def raw_json(header: bytes, body: bytes = b"hello") -> bytes:
    """A frame with this text as its JSON header."""
    length = 4 + len(header) + len(body)
    return length.to_bytes(4, "big") + len(header).to_bytes(4, "big") + header + body


def json_send(fields: str, *, more: str = "", opaque: str = "7") -> bytes:
    """A send whose ext fields, and top-level fields behind them, are these JSON texts."""
    text = (
        f'{{"code":310,"extFields":{{{fields}}},"flag":0,"language":"JAVA","opaque":{opaque},'
        f'"serializeTypeCurrentRPC":"JSON","version":401{more}}}'
    )
    return raw_json(text.encode())


def heartbeat(group: str = "G", topics: Sequence[str] = ("T", "U"), version: int = 0) -> bytes:
    """A consumer's heartbeat; the group subscribes to TagA of the topics."""
    subscriptions = [build_subscription_data(topic, "TagA") for topic in topics]
    for subscription in subscriptions:
        subscription.sub_version = version
    body = HeartbeatData(
        client_id="c1", consumer_data_set=[ConsumerData(group, subscription_data_set=subscriptions)]
    )
    return frame(RemotingCommand(RequestCode.HEART_BEAT, body=body))


def pull(
    queue_id: int = 0,
    offset: int = 0,
    topic: str = "T",
    *,
    kind: SerializeType = SerializeType.JSON,
    opaque: int | None = None,
    flag: int = 0,
    body: bytes | None = None,
    **fields: Any,
) -> bytes:
    """A pull of a push consumer, which waits up to 20 s, unless fields say otherwise."""
    defaults: dict[str, Any] = {
        "consumer_group": "G",
        "max_msg_nums": 32,
        "sys_flag": PullSysFlag.SUSPEND,
        "commit_offset": 0,
        "suspend_timeout_millis": 20_000,
        "sub_version": 0,
        "expression_type": "TAG",
    }
    header = PullMessageRequestHeader(
        topic=topic, queue_id=queue_id, queue_offset=offset, **{**defaults, **fields}
    )
    number = 100 + offset if opaque is None else opaque
    return frame(RemotingCommand(RequestCode.PULL_MESSAGE, header, body, opaque=number, flag=flag), kind)


def commit(offset: int, queue_id: int = 0, topic: str = "T", group: str = "G") -> bytes:
    """UPDATE_CONSUMER_OFFSET (15), which may be a queue's first commit."""
    header = UpdateConsumerOffsetRequestHeader(group, topic, queue_id, offset)
    return frame(RemotingCommand(RequestCode.UPDATE_CONSUMER_OFFSET, header, opaque=50))


def reset(mode: ResetMode) -> bytes:
    """Reset the group's offsets in T to the beginning."""
    header = ResetOffsetRequestHeader("T", "G", 0, is_force=True, reset_mode=mode)
    return frame(RemotingCommand(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header, opaque=60))


def create_topic(topic: str, queues: int = 4, perm: int = 6) -> bytes:
    header = CreateTopicRequestHeader(topic, "TBW102", queues, queues, perm, "SINGLE_TAG")
    return frame(RemotingCommand(RequestCode.UPDATE_AND_CREATE_TOPIC, header))


def delete_topic(topic: str) -> bytes:
    return frame(RemotingCommand(RequestCode.DELETE_TOPIC_IN_BROKER, DeleteTopicRequestHeader(topic)))


# Of a message in a batch, as Java's client writes them.
OWN: Final = "UNIQ_KEY\x01FD0000000000000000000000000000023A\x02WAIT\x01true\x02TAGS\x01TagA"


def batch(
    code: int = RequestCode.SEND_BATCH_MESSAGE,
    kind: SerializeType = SerializeType.JSON,
    texts: Sequence[str] = (OWN,) * 3,
    body: bytes | None = None,
    **fields: Any,
) -> bytes:
    """A batch with a message for each properties text; SEND_MESSAGE_V2 (310) says so in its header."""
    if body is None:
        body = b"".join(inner(bytes((number % 256,)) * 10, text) for number, text in enumerate(texts))
    defaults: dict[str, Any] = {"properties": "A\x01b\x02WAIT\x01true", "batch": True}
    return send(code=code, kind=kind, body=body, **{**defaults, **fields})


def inner(body: bytes, text: str, flag: int = 0, size_error: int = 0) -> bytes:
    """A message of a batch; ``size_error`` is added to its size."""
    properties = text.encode()
    size = 22 + len(body) + len(properties) + size_error
    head = struct.pack(">iiiii", size, 0, 0, flag, len(body))
    return head + body + struct.pack(">h", len(properties)) + properties


_NAMES: Final = ("UNIQ_KEY", "WAIT", "TAGS", "KEYS", "DELAY", "TRAN_MSG", "TIMER_DELAY_SEC", "a", "AWAIT", "")
_VALUES: Final = ("true", "false", "TagA", "", "1", 'q"\\', "\x1f", "\x00", "é", "DELAY\x011", "x" * 40)
_pieces = st.builds(
    lambda name, value: f"{name}\x01{value}", st.sampled_from(_NAMES), st.sampled_from(_VALUES)
)
_texts = st.one_of(
    st.just(PLAIN),
    st.sampled_from(
        (None, "", "\x02", "no pair", "null", "WAIT\x01true", PLAIN + "\x02", PLAIN + "x" * 32_700)
    ),
    st.lists(st.one_of(_pieces, st.just("WAIT\x01true"), st.just("TAGS\x01B")), max_size=5).map("\x02".join),
    st.lists(_pieces, max_size=3).map(lambda pieces: "\x02".join([PLAIN, *pieces])),
)
_INTS: Final = (0, 1, -1, 2**31 - 1, -(2**31))
_sends = st.builds(
    send,
    st.sampled_from(("T", "T", "T", "U", "New", "%RETRY%G", "SCHEDULE_TOPIC_XXXX", "TBW102", "", "t" * 128)),
    st.sampled_from((0, 0, 1, 2, 3, 4, -1, 2**31 - 1)),
    st.one_of(st.binary(max_size=300), st.sampled_from((b"", bytes(4_000), bytes(9_000)))),
    _texts,
    kind=st.sampled_from(KINDS),
    code=st.sampled_from((RequestCode.SEND_MESSAGE_V2,) * 5 + (RequestCode.SEND_MESSAGE,)),
    opaque=st.sampled_from(_INTS),
    flag=st.sampled_from((0, 0, 0, 0, 1, 2)),
    sys_flag=st.sampled_from((0, 0, 0, 1, 2, 4, 8, 12, 16, 32, 64, 128, -1)),
    born_timestamp=st.sampled_from((0, -1, 2**63 - 1, -(2**63))),
    reconsume_times=st.sampled_from((None, *_INTS)),
    unit_mode=st.booleans(),
    max_reconsume_times=st.sampled_from((None, 0, 3)),
    batch=st.sampled_from((False, False, False, True)),
    broker_name=st.sampled_from((None, "broker-a")),
)
_plain_sends = st.builds(
    send,
    st.sampled_from(("T", "T", "T", "U")),
    st.integers(0, 3),
    st.binary(max_size=200),
    kind=st.sampled_from(KINDS),
    opaque=st.integers(-(2**31), 2**31 - 1),
    sys_flag=st.sampled_from((0, 1, 16)),
)
_pulls = st.builds(
    pull,
    st.sampled_from((0, 0, 1, 2, 3, 4, -1, 2**31 - 1)),
    st.sampled_from((0, 0, 0, 1, 2, 3, 5, 20, -1, 2**63 - 1)),
    st.sampled_from(("T", "T", "T", "U", "New", "%RETRY%G", "SCHEDULE_TOPIC_XXXX", "")),
    kind=st.sampled_from(KINDS),
    opaque=st.sampled_from((None, *_INTS)),
    flag=st.sampled_from((0,) * 8 + (1, 2)),
    body=st.sampled_from((None, None, None, None, b"x")),
    consumer_group=st.sampled_from(("G", "G", "G", "H", "", "null")),
    max_msg_nums=st.sampled_from((32, 32, 1, 2, 0, -1, 2**31 - 1)),
    sys_flag=st.sampled_from((0, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, -1)),
    commit_offset=st.sampled_from((0, 1, 3, -1, 2**63 - 1)),
    suspend_timeout_millis=st.sampled_from((20_000, 0, -1)),
    sub_version=st.sampled_from((0, 0, 0, -1, 2**63 - 1)),
    subscription=st.sampled_from((None, "*", "", "TagA", "TagB", "TagA || TagB", "null", "a > 1")),
    expression_type=st.sampled_from(("TAG", "TAG", "TAG", None, "SQL92", "null")),
    max_msg_bytes=st.sampled_from((None, None, 0, 2**31 - 1)),
    request_source=st.sampled_from((None, None, None, 1)),
    epoch=st.sampled_from((None,) * 8 + (0, 1)),
)
_own_texts = st.one_of(st.just(OWN), st.just(OWN), _texts.map(lambda text: text or ""))
_batches = st.builds(
    batch,
    st.sampled_from((RequestCode.SEND_BATCH_MESSAGE,) * 6 + (RequestCode.SEND_MESSAGE_V2,)),
    st.sampled_from(KINDS),
    st.lists(_own_texts, max_size=6),
    properties=st.one_of(st.sampled_from(("WAIT\x01true", "WAIT\x01true", PLAIN)), _texts),
    topic=st.sampled_from(("T", "T", "T", "U", "New", "%RETRY%G", "SCHEDULE_TOPIC_XXXX")),
    queue_id=st.sampled_from((0, 0, 1, 2, 3, 4, -1)),
    batch=st.sampled_from((True, True, True, False)),
    opaque=st.sampled_from(_INTS),
    flag=st.sampled_from((0, 0, 0, 0, 1, 2)),
    sys_flag=st.sampled_from((0, 0, 0, 1, 4, 8, 16, 64, 128, -1)),
    reconsume_times=st.sampled_from((None, *_INTS)),
)


@st.composite
def _damaged_batches(draw: st.DrawFn) -> bytes:
    """A batch whose messages have wrong lengths, or other flags and bodies."""
    messages = draw(
        st.lists(
            st.builds(
                inner,
                st.binary(max_size=200),
                _own_texts.filter(lambda text: len(text) < 1_000),
                st.sampled_from(_INTS),
                st.sampled_from((0, 0, 0, 0, 1, -1, 2**30)),
            ),
            max_size=4,
        )
    )
    body = bytearray(b"".join(messages))
    for _ in range(draw(st.integers(0, 2)) if body else 0):
        body[draw(st.integers(0, len(body) - 1))] = draw(st.sampled_from((0, 1, 2, 0x7F, 0x80, 0xFF)))
    return batch(body=bytes(body)[: draw(st.sampled_from((None, None, -1)))])


_others = st.one_of(
    st.builds(pull, st.integers(0, 3), st.integers(0, 20), st.sampled_from(("T", "U"))),
    st.builds(commit, st.integers(0, 5), st.integers(0, 3)),
    st.builds(create_topic, st.sampled_from(("T", "U")), st.integers(1, 4), st.sampled_from((2, 4, 6))),
    st.builds(delete_topic, st.sampled_from(("T", "U"))),
    st.builds(batch),
    st.builds(heartbeat),
    st.just(frame(RemotingCommand(9_999))),
)


@st.composite
def _damaged(draw: st.DrawFn) -> bytes:
    """A request with some bytes of its header changed, taken out or put in; its lengths are right."""
    data = draw(st.one_of(_plain_sends, _sends, _pulls, _batches))
    header_length = int.from_bytes(data[5:8], "big")
    header = bytearray(data[PREFIX_BYTES : PREFIX_BYTES + header_length])
    body = data[PREFIX_BYTES + header_length :]
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(header) - 1))
        new: bytes = draw(
            st.sampled_from(
                (b"", b"0", b"1", b"-", b'"', b"\\", b"{", b"}", b" ", b"\x00", b"\xff", b".", b"e")
            )
        )
        header[at : at + draw(st.integers(0, 2))] = new
    length = 4 + len(header) + len(body)
    return length.to_bytes(4, "big") + data[4:5] + len(header).to_bytes(3, "big") + bytes(header) + body


@st.composite
def _rewritten(draw: st.DrawFn) -> bytes:
    """A send in JSON whose fields have unusual forms, or stand twice."""
    values = {
        "a": '"PG"',
        "b": '"T"',
        "c": '"TBW102"',
        "d": '"4"',
        "e": '"0"',
        "f": '"0"',
        "g": '"1"',
        "h": '"0"',
    }
    unusual = (
        *(
            '"01"',
            '"+1"',
            '" 1"',
            '"1 "',
            '"1.0"',
            '"-0"',
            '"1e0"',
            "1",
            "1.0",
            "true",
            "null",
            '""',
            '"null"',
        ),
        *(
            '"2147483648"',
            '"9223372036854775808"',
            '"\\u0030"',
            '"\\u00e9"',
            '"é"',
            '"TRUE"',
            '"0"',
            "{}",
            "[]",
        ),
    )
    optional = {
        "i": '"TAGS\\u0001A"',
        "j": '"0"',
        "k": '"false"',
        "l": '"16"',
        "m": '"false"',
        "n": '"b"',
        "z": '"1"',
    }
    for key in draw(st.lists(st.sampled_from(sorted(optional)), unique=True)):
        values[key] = optional[key]
    for key in draw(st.lists(st.sampled_from(sorted(values)), max_size=2, unique=True)):
        values[key] = draw(st.sampled_from(unusual))
    pairs = [f'"{key}":{value}' for key, value in values.items()]
    if draw(st.booleans()):
        pairs.append(draw(st.sampled_from(pairs)))
    more = draw(
        st.sampled_from(("", "", ',"remark":""', ',"remark":null', ',"opaque":8', ',"x":1', ',"flag":0'))
    )
    opaque = draw(st.sampled_from(("7", "7", "-0", "007", "7.0", "2147483648", '"7"', "null")))
    return json_send(", ".join(pairs) if draw(st.booleans()) else ",".join(pairs), more=more, opaque=opaque)


frames = st.one_of(
    *(_plain_sends, _plain_sends, _plain_sends, _sends, _sends),
    *(_pulls, _pulls, _batches, _batches, _damaged_batches(), _others, _damaged(), _rewritten()),
)
