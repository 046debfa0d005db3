"""A reset with ``--expect`` is refused if something moved since its preview (docs/watched_reset.md)."""

from __future__ import annotations

import codecs
import json
from pathlib import Path

import pytest

from rewindmq import MessageQueue
from rewindmq.client.admin.watched_reset.expected import expected_of, moved_since, read_expected
from rewindmq.client.admin.watched_reset.make_preview import make_preview
from rewindmq.protocol.errors import ClientError
from tests.client.admin.support import GROUP, TOPIC, new_consumer
from tests.support.fixtures import played
from tests.support.stage import SimStage

Q0, Q1 = MessageQueue(TOPIC, "broker-a", 0), MessageQueue(TOPIC, "broker-a", 1)
LINE = f"resetOffsetByTime -t {TOPIC} -g {GROUP} -s 0"


def save(path: Path, data: object) -> None:
    path.write_text(json.dumps(data))


async def previewed(stage: SimStage, path: Path) -> str:
    """Store offset 4 in both queues without a consumer; save a preview; return the guarded command."""
    await stage.create_topic(TOPIC, 2)
    await stage.send(4, TOPIC)
    for queue in (Q0, Q1):
        stage.brokers["broker-a"].context.offsets.table.commit(GROUP, TOPIC, queue.queue_id, 4)
    save(path, await stage.data(f"{LINE} --preview"))
    return f"{LINE} --expect {path}"


@played()
async def test_a_reset_is_carried_out_if_nothing_moved_since_its_preview(
    stage: SimStage, tmp_path: Path
) -> None:
    line = await previewed(stage, tmp_path / "preview")
    # New messages do not change what this reset does.
    await stage.send(2, TOPIC)
    (printed,) = await stage.printed(line.split())
    assert printed.exit_code == 0
    admin = await stage.admin()
    assert [await admin.groups.stored_offset(GROUP, queue) for queue in (Q0, Q1)] == [0, 0]


@played()
async def test_a_preview_that_an_editor_saved_with_a_byte_order_mark_is_read(
    stage: SimStage, tmp_path: Path
) -> None:
    path = tmp_path / "preview"
    line = await previewed(stage, path)
    path.write_bytes(codecs.BOM_UTF8 + path.read_bytes())
    (printed,) = await stage.printed(line.split())
    assert printed.exit_code == 0


@played()
async def test_of_two_people_who_reset_after_the_same_preview_the_second_is_told(
    stage: SimStage, tmp_path: Path
) -> None:
    line = await previewed(stage, tmp_path / "preview")
    await stage.run(line)
    for suffix in ("", " --watch"):
        (printed,) = await stage.printed(f"{line}{suffix}".split())
        assert printed.exit_code == 5
        assert printed.data["moved"] == [
            "broker-a:0: stored offset was 4, is 0",
            "broker-a:1: stored offset was 4, is 0",
        ]
        assert printed.lines[0].startswith("nothing was reset")


@played()
async def test_a_second_classic_reset_is_told_while_consumers_still_apply_the_first(
    stage: SimStage, tmp_path: Path
) -> None:
    """They give their queues up at once, and store the target 10 s later."""
    async with new_consumer(stage) as consumer:
        await stage.create_topic(TOPIC, 1)
        await stage.send(4, TOPIC)
        await stage.world.sleep(60)
        path = tmp_path / "preview"
        save(path, await stage.data(f"{LINE} --preview"))
        await stage.run(f"{LINE} --expect {path}")
        await stage.world.sleep(1)
        (printed,) = await stage.printed(f"{LINE} --expect {path}".split())
        assert printed.exit_code == 5
        assert f"broker-a:0: consumer was {consumer.client_id}, is -" in printed.data["moved"]


@played()
async def test_a_refused_reset_changes_nothing(stage: SimStage, tmp_path: Path) -> None:
    line = await previewed(stage, tmp_path / "preview")
    stage.brokers["broker-a"].context.offsets.table.commit(GROUP, TOPIC, 1, 3)
    (printed,) = await stage.printed(line.split())
    assert printed.data["moved"] == ["broker-a:1: stored offset was 4, is 3"]
    admin = await stage.admin()
    assert [await admin.groups.stored_offset(GROUP, queue) for queue in (Q0, Q1)] == [4, 3]


@played()
async def test_a_target_at_the_end_moves_with_new_messages(stage: SimStage, tmp_path: Path) -> None:
    path = tmp_path / "preview"
    await previewed(stage, path)
    line = LINE.replace("-s 0", "-s -1")
    save(path, await stage.data(f"{line} --preview"))
    await stage.send(1, TOPIC)
    (printed,) = await stage.printed(f"{line} --expect {path}".split())
    assert any("target offset was 4, is" in text for text in printed.data["moved"])


@played()
async def test_the_preview_of_another_reset_is_refused(stage: SimStage, tmp_path: Path) -> None:
    line = await previewed(stage, tmp_path / "preview")
    with pytest.raises(ClientError, match="the preview is of timestamp 0, not 5: give the same options"):
        await stage.run(line.replace("-s 0", "-s 5"))
    with pytest.raises(ClientError, match="leave out -b, -q, -o and --preview"):
        await stage.run(f"{line} --preview")
    with pytest.raises(ClientError, match=r"cannot read the preview .*: No such file"):
        await stage.run(f"{line}-gone")


_HEAD = b'{"group":"g","topic":"t","timestamp":0,"force":true,"obstacles":[],"queues":[],"x":'


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff\xfe",
        b'{"group": 1}',
        b"preview: group[g]",
        b"[" * 5000,
        _HEAD + b"[" * 200_000,
    ],
    ids=len,
)
def test_a_file_that_is_no_preview_is_refused_with_what_to_do(data: bytes) -> None:
    with pytest.raises(ClientError, match="save the output of --preview --json again"):
        read_expected(data)


@played()
async def test_what_a_program_expects_is_what_the_command_saves(stage: SimStage, tmp_path: Path) -> None:
    path = tmp_path / "preview"
    await previewed(stage, path)
    preview = await make_preview(await stage.admin(), TOPIC, GROUP, 0)
    assert expected_of(preview) == read_expected(path.read_bytes())
    assert moved_since(expected_of(preview), preview) == []
