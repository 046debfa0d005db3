"""A reset goes to a time, or to an offset for each queue (docs/watched_reset.md)."""

from __future__ import annotations

import codecs
import json
import os
from pathlib import Path

import pytest

from rewindmq import MessageQueue
from rewindmq.client.admin.target_offsets import read_offsets
from rewindmq.protocol.errors import ClientError
from tests.client.admin.support import GROUP, TOPIC, new_consumer
from tests.support.fixtures import RunScenario, played
from tests.support.stage import SimStage

Q0, Q1 = MessageQueue(TOPIC, "broker-a", 0), MessageQueue(TOPIC, "broker-a", 1)
LINE = f"resetOffsetByTime -t {TOPIC} -g {GROUP}"


async def offline_at(stage: SimStage, offset: int, group: str = GROUP) -> None:
    """Store an offset in both queues, which have eight messages, without a consumer."""
    if TOPIC not in await (await stage.admin()).topics.fetch_all_topic_list():
        await stage.create_topic(TOPIC, 2)
        await stage.send(8, TOPIC)
    for queue in (Q0, Q1):
        stage.brokers["broker-a"].context.offsets.table.commit(group, TOPIC, queue.queue_id, offset)


async def stored(stage: SimStage) -> list[int | None]:
    admin = await stage.admin()
    return [await admin.groups.stored_offset(GROUP, queue) for queue in (Q0, Q1)]


def a_file(path: Path, *queues: tuple[str, int, int], topic: str = TOPIC) -> Path:
    rows = [
        {"brokerName": broker, "queueId": queue_id, "offset": offset} for broker, queue_id, offset in queues
    ]
    path.write_text(json.dumps({"topic": topic, "queues": rows}))
    return path


@pytest.mark.parametrize(("options", "after"), [("--to earliest", 0), ("--to latest", 8), ("--ago 7d", 0)])
@played()
async def test_a_reset_to_the_start_the_end_or_back_by_a_duration(
    stage: SimStage, options: str, after: int
) -> None:
    await offline_at(stage, 4)
    await stage.run(f"{LINE} {options}")
    assert await stored(stage) == [after, after]


@played()
async def test_a_duration_counts_back_from_now(stage: SimStage) -> None:
    await offline_at(stage, 8)
    await stage.world.sleep(600)
    await stage.send(2, TOPIC)
    await stage.run(f"{LINE} --ago 5m -f true")
    assert await stored(stage) == [8, 8]


@played()
async def test_offsets_move_only_their_queues(stage: SimStage, tmp_path: Path) -> None:
    await offline_at(stage, 4)
    (printed,) = await stage.printed(f"{LINE} --to-offset broker-a:1=2".split())
    assert (await stored(stage), printed.data["timestamp"]) == ([4, 2], None)
    path = a_file(tmp_path / "offsets", ("broker-a", 0, 1), ("broker-a", 1, 8))
    await stage.run(f"{LINE} --from-file {path} -f false")
    assert await stored(stage) == [1, 2]


@played()
async def test_a_group_goes_where_another_group_is(stage: SimStage) -> None:
    await offline_at(stage, 4)
    await offline_at(stage, 3, "other")
    preview = await stage.data(f"{LINE} --as-group other --preview")
    assert [row["targetOffset"] for row in preview["queues"]] == [3, 3]
    await stage.run(f"{LINE} --as-group other")
    assert await stored(stage) == [3, 3]
    with pytest.raises(ClientError, match=r"group nobody has no stored offset .*: name another group"):
        await stage.run(f"{LINE} --as-group nobody")
    with pytest.raises(ClientError, match="name another group with --as-group"):
        await stage.run(f"{LINE} --as-group {GROUP}")


@played()
async def test_a_reset_to_offsets_is_refused_if_something_moved_since_its_preview(
    stage: SimStage, tmp_path: Path
) -> None:
    await offline_at(stage, 4)
    line = f"{LINE} --to-offset broker-a:0=1"
    data = await stage.data(f"{line} --preview")
    assert [row["queueId"] for row in data["queues"]] == [0]
    path = tmp_path / "preview"
    path.write_bytes(json.dumps(data).encode())
    await stage.run(f"{line} --expect {path}")
    (second,) = await stage.printed(f"{line} --expect {path}".split())
    assert second.data["moved"] == ["broker-a:0: stored offset was 4, is 1"]
    with pytest.raises(ClientError, match="the preview is of timestamp -, not 0: give the same options"):
        await stage.run(f"{LINE} -s 0 --expect {path}")


@pytest.mark.parametrize("mode", ["server", "fenced"])
@played()
async def test_running_consumers_are_reset_to_an_offset_in_one_queue(stage: SimStage, mode: str) -> None:
    async with new_consumer(stage):
        await stage.create_topic(TOPIC, 2)
        await stage.send(8, TOPIC)
        await stage.world.sleep(60)
        before = len(stage.consumed)
        await stage.run(f"{LINE} --to-offset broker-a:1=2 --mode {mode}")
        await stage.world.sleep(60)
        assert stage.consumed[before:] == [(Q1, offset) for offset in range(2, 8)]


@played()
async def test_running_consumers_in_classic_mode_have_no_reset_to_offsets(stage: SimStage) -> None:
    async with new_consumer(stage):
        await stage.create_topic(TOPIC, 2)
        await stage.send(8, TOPIC)
        await stage.world.sleep(60)
        preview = await stage.data(f"{LINE} --to-offset broker-a:0=1 --preview")
        assert preview["obstacles"] == [
            "consumers are connected: a reset to offsets needs mode server or fenced"
        ]
        with pytest.raises(ClientError, match="use mode server or fenced, or stop the group's consumers"):
            await stage.run(f"{LINE} --to-offset broker-a:0=1 --mode classic")
        assert await stored(stage) == [8, 8]


@played()
async def test_offsets_out_of_range_and_unknown_queues_are_refused_before_anything_moves(
    stage: SimStage,
) -> None:
    await offline_at(stage, 4)
    for preview in ("", " --preview"):
        with pytest.raises(ClientError, match="offset 9 of broker-a:1 is out of range: give 0 to 8"):
            await stage.run(f"{LINE} --to-offset broker-a:0=0 --to-offset broker-a:1=9{preview}")
        with pytest.raises(ClientError, match="has no queue broker-a:2, broker-b:0: see topicRoute"):
            await stage.run(f"{LINE} --to-offset broker-a:2=0 --to-offset broker-b:0=0{preview}")
    with pytest.raises(ClientError, match="broker-a:0 is named twice: give it one offset"):
        await stage.run(f"{LINE} --to-offset broker-a:0=0 --to-offset broker-a:0=1")
    with pytest.raises(ClientError, match="use --to-offset for the offsets of single queues"):
        await stage.run(f"{LINE} --to latest -b 127.0.0.1:1 -q 0")
    assert await stored(stage) == [4, 4]


QUEUE = '{"brokerName": "broker-a", "queueId": 0, "offset": 0}'


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "has another form .*: write"),
        ("[]", "Expected `object`, got `array`"),
        (f'{{"topic": "{TOPIC}", "queues": []}}', "Expected `array` of length >= 1"),
        (f'{{"topic": "{TOPIC}", "queues": [{QUEUE}], "group": "g"}}', "unknown field `group`"),
        (f'{{"topic": "{TOPIC}", "queues": [{QUEUE.replace(": 0}", ": -1}")}]}}', "Expected `int` >= 0"),
        (f'{{"topic": "{TOPIC}", "queues": [{QUEUE.replace(": 0}", ": 1.5}")}]}}', "Expected `int`"),
        (f'{{"topic": "{TOPIC}", "queues": [{QUEUE.replace(": 0}", f": {2**63}}}")}]}}', "has another form"),
        (f'{{"topic": "{TOPIC}", "queues": [{QUEUE}, {QUEUE}]}}', "broker-a:0 is named twice"),
        (f'{{"topic": "Other", "queues": [{QUEUE}]}}', "are of topic 'Other', not 'TopicTest': correct"),
        ("[" * 5000, "has another form"),
        ("\ud800", "has another form"),
    ],
)
def test_a_file_of_another_form_is_refused_in_one_sentence(text: str, complaint: str) -> None:
    with pytest.raises(ClientError, match=complaint) as refused:
        read_offsets(text.encode(errors="surrogatepass"), TOPIC)
    assert "\n" not in str(refused.value)


def test_a_file_with_a_byte_order_mark_is_read() -> None:
    text = {"topic": TOPIC, "queues": [{"brokerName": "broker-a", "queueId": 0, "offset": 5}]}
    assert read_offsets(codecs.BOM_UTF8 + json.dumps(text).encode(), TOPIC) == {Q0: 5}


@pytest.mark.parametrize("option", ["--from-file", "-s 0 --expect"])
def test_what_is_no_file_is_refused_in_one_sentence_and_without_waiting(
    play: RunScenario, tmp_path: Path, option: str
) -> None:
    """A pipe without a writer would hold the command for ever."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    async def scenario(stage: SimStage) -> None:
        words = f"{LINE} {option}".split()
        for path, reason in (
            ("", "the option names no file"),
            (str(pipe), "it is no regular file: save its content to one"),
            (str(tmp_path), "Is a directory"),
            (str(tmp_path / "none"), "No such file or directory"),
        ):
            with pytest.raises(ClientError) as refused:
                await stage.printed([*words, path])
            assert str(refused.value).endswith(f"{path}: {reason}" if path else reason)

    play(scenario)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("-s 0 --times 2", "--times goes with --until-held: add it, or leave out --times"),
        ("-s 0 --watch --times 2", "--times goes with --until-held: add it, or leave out --times"),
        ("-s 0 --wait 5", "--wait goes with --watch and --until-held: add one of them, or leave out --wait"),
        ("-s 0 --preview --wait 5", "--wait goes with --watch and --until-held: add one of them, or leave"),
        ("-s 0 -b 127.0.0.1:1 -q 0 -c", "-c resets every queue of the topic: leave out -b, -q and -o, or -c"),
        ("--to-offset broker-a:0=0 -c --preview", "-c resets the whole topic to a time: leave it out"),
    ],
)
@played()
async def test_an_option_that_would_be_ignored_is_refused(
    stage: SimStage, options: str, sentence: str
) -> None:
    await offline_at(stage, 4)
    with pytest.raises(ClientError, match=sentence):
        await stage.run(f"{LINE} {options}")
    assert await stored(stage) == [4, 4]


def test_a_file_that_is_too_large_is_refused() -> None:
    with pytest.raises(ClientError, match="at most 16777216 bytes: name fewer queues"):
        read_offsets(b" " * (16 * 1024 * 1024 + 1), TOPIC)


@pytest.mark.parametrize(
    "options", ["--ago 2", "--ago -2h", "--to middle", "--to-offset broker-a=1", "--to-offset a:0=-1", ""]
)
@played()
async def test_wrong_words_are_wrong_options(stage: SimStage, options: str) -> None:
    with pytest.raises(SystemExit) as ended:
        await stage.run(f"{LINE} {options}")
    assert ended.value.code == 2
