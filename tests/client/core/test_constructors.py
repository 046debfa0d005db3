"""What the constructors of clients accept, refuse and say about themselves."""

from __future__ import annotations

import inspect
import pydoc
import re
from pathlib import Path
from typing import Any

import pytest

from rewindmq import (
    AdminClient,
    ClientError,
    ConsumeConcurrentlyStatus,
    ConsumeFromWhere,
    LitePullConsumer,
    LocalCluster,
    Message,
    MessageModel,
    MessageQueue,
    Producer,
    Profile,
    PullConsumer,
    PushConsumer,
    SerializeType,
    TransactionProducer,
    UnknownOptionError,
)

ADDRESS = "127.0.0.1:9876"
KINDS = [Producer, TransactionProducer, PushConsumer, PullConsumer, LitePullConsumer, AdminClient]


@pytest.mark.parametrize("kind", [*KINDS, LocalCluster], ids=lambda kind: kind.__name__)
def test_help_explains_each_parameter_and_hides_none(kind: type[Any]) -> None:
    parameters = inspect.signature(kind).parameters
    assert not [name for name, value in parameters.items() if value.kind is inspect.Parameter.VAR_KEYWORD]
    text = pydoc.plain(pydoc.render_doc(kind))
    explained = re.findall(r"^ \|      (\w+): ", text, re.MULTILINE)
    assert set(parameters) <= set(explained)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_parameters_that_clients_share_are_explained_alike(kind: type[Any]) -> None:
    def explained(of: type[Any]) -> dict[str, str]:
        _, _, arguments = inspect.cleandoc(of.__doc__ or "").partition("Args:")
        return dict(re.findall(r"^    (\w+): (.*?)(?=^    \w|^$|\Z)", arguments, re.MULTILINE | re.DOTALL))

    shared = {"namesrv_addr", "profile", "serialize_type", "time_scale", "seed", "runtime"}
    if kind is not AdminClient:
        shared |= {"instance_name", "client_ip", "unit_name", "client_callback_executor_threads"}
        shared |= {"mq_client_api_timeout"}
    own, model = explained(kind), explained(Producer)
    assert {name: own[name] for name in shared} == {name: model[name] for name in shared}


@pytest.mark.parametrize(
    ("kind", "wrong", "right"),
    [
        (PushConsumer, "consume_form", "consume_from"),
        (LitePullConsumer, "auto_comit", "auto_commit"),
        (PullConsumer, "message_modl", "message_model"),
        (Producer, "retry_times_when_failed", "retry_times_when_send_failed"),
        (AdminClient, "time_scal", "time_scale"),
        (PushConsumer, "switches", "profile"),
        (Producer, "wire", "serialize_type"),
        (LocalCluster, "broker", "brokers"),
    ],
)
def test_an_unknown_option_names_the_one_that_was_meant(kind: type[Any], wrong: str, right: str) -> None:
    with pytest.raises(UnknownOptionError) as raised:
        kind(**{wrong: 1})
    assert str(raised.value) == f"{kind.__name__} has no option {wrong!r}; did you mean {right!r}?"
    assert isinstance(raised.value, ClientError)
    assert isinstance(raised.value, TypeError)


def test_an_option_unlike_all_others_is_named_alone() -> None:
    with pytest.raises(UnknownOptionError, match=r"^Producer has no option 'zzz'$"):
        Producer("P", ADDRESS, zzz=1)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("word", "start"),
    [
        (None, ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET),
        ("first", ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET),
        ("Last", ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET),
        ("TIMESTAMP", ConsumeFromWhere.CONSUME_FROM_TIMESTAMP),
        ("consume_from_first_offset", ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET),
        (ConsumeFromWhere.CONSUME_FROM_MAX_OFFSET, ConsumeFromWhere.CONSUME_FROM_MAX_OFFSET),
    ],
)
@pytest.mark.parametrize("name", ["consume_from", "consume_from_where"])
@pytest.mark.parametrize("kind", [PushConsumer, LitePullConsumer])
def test_consume_from_takes_short_names(
    kind: type[PushConsumer | LitePullConsumer], name: str, word: Any, start: ConsumeFromWhere
) -> None:
    options: dict[str, Any] = {name: word}
    assert kind("G", ADDRESS, **options).options.consume_from_where is start


def test_consume_from_and_its_name_in_rocketmq_are_one_option() -> None:
    with pytest.raises(ClientError, match="are one option"):
        PushConsumer("G", ADDRESS, consume_from="last", consume_from_where="last")


def test_names_are_accepted_where_enums_are() -> None:
    consumer = PushConsumer("G", ADDRESS, profile="V53", serialize_type="json", message_model="broadcasting")
    assert consumer.config.profile.release is Profile.V53
    assert consumer.config.serialize_type is SerializeType.JSON
    assert consumer.options.message_model is MessageModel.BROADCASTING
    assert (
        Producer("P", ADDRESS, serialize_type=SerializeType.MSGPACK).config.serialize_type
        is SerializeType.MSGPACK
    )


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        (
            "consume_from",
            "frist",
            "consume_from 'frist' is none of first, last, timestamp; did you mean 'first'?",
        ),
        ("consume_from", "", "consume_from '' is none of first, last, timestamp"),
        ("message_model", "broadcast", "is none of broadcasting, clustering; did you mean 'broadcasting'?"),
        (
            "serialize_type",
            "jsn",
            "serialize_type 'jsn' is none of json, rocketmq, msgpack; did you mean 'json'?",
        ),
        ("serialize_type", True, "serialize_type True is none of json, rocketmq, msgpack"),
        ("profile", "v5", "profile 'v5' is none of v42, v49, v53, unguarded, epoch; did you mean 'v53'?"),
    ],
)
def test_an_unknown_value_raises_with_the_choices_and_the_nearest(
    option: str, value: Any, words: str
) -> None:
    options: dict[str, Any] = {option: value}
    with pytest.raises(ClientError) as raised:
        PushConsumer("G", ADDRESS, **options)
    assert str(raised.value).endswith(words)


@pytest.mark.parametrize(
    "kind", [PushConsumer, PullConsumer, LitePullConsumer], ids=lambda kind: kind.__name__
)
@pytest.mark.parametrize("root", [5, b"/tmp/offsets", "", True])
def test_an_offset_root_that_is_no_path_is_refused_in_words(kind: type[Any], root: object) -> None:
    with pytest.raises(ClientError, match="offset_root must be the path of a directory, as a Path or a text"):
        kind("g", ADDRESS, message_model="broadcasting", offset_root=root)


async def test_offsets_and_events_go_to_directories_given_as_texts(tmp_path: Path) -> None:
    """Each kind of consumer broadcasts, at a real broker."""
    offsets, events = tmp_path / "offsets", tmp_path / "events"
    events.mkdir()
    with LocalCluster(brokers=1, events_directory=str(events)) as cluster:
        where: dict[str, Any] = {"message_model": "broadcasting", "offset_root": str(offsets)}
        queue = MessageQueue("T", "broker-a", 0)
        async with cluster.producer("p") as producer:
            await producer.send(Message("T", b"one"))
        push = cluster.push_consumer("push", **where)
        lite = cluster.lite_pull_consumer("lite", consume_from="first", **where)
        push.subscribe("T")
        push.register_message_listener(lambda messages: ConsumeConcurrentlyStatus.CONSUME_SUCCESS)
        lite.subscribe("T")
        async with push, lite, cluster.pull_consumer("pull", **where) as pull:
            assert await pull.fetch_consume_offset(queue) == -1
            assert [message.body for message in await lite.poll(30_000)] == [b"one"]
            lite.commit_sync()
    assert {path.parent.name for path in offsets.glob("*/*/offsets.json")} >= {"push", "lite"}
    assert (events / "broker-a.jsonl").read_text()
