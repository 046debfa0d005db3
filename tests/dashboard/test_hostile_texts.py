"""Every text of a peer is shown as text: names, ids, keys, properties, bodies, remarks, stacks, figures."""

from __future__ import annotations

import asyncio
import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit

import msgspec
import pytest

from rewindmq import MessageQueue
from rewindmq.protocol.body.cluster import ClusterInfo
from rewindmq.protocol.body.connection import Connection, ConsumerConnection
from rewindmq.protocol.body.fenced_commit import FencedCommit, FencedCommitList
from rewindmq.protocol.body.group import GroupList
from rewindmq.protocol.body.heartbeat import SubscriptionData
from rewindmq.protocol.body.kv import KVTable
from rewindmq.protocol.body.route import BrokerData
from rewindmq.protocol.body.running_info import ConsumerRunningInfo, ConsumeStatus, ProcessQueueInfo
from rewindmq.protocol.body.stats import ConsumeStats, OffsetWrapper, TopicOffset, TopicStatsTable
from rewindmq.protocol.body.topic_list import TopicList
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.offset import SearchOffsetResponseHeader
from rewindmq.protocol.names import dlq_topic, retry_topic
from rewindmq.protocol.remoting.runtime import system_runtime
from tests.client.client_records import record
from tests.client.scripted_broker import pull_answer
from tests.dashboard.metrics.exposition import OPEN_METRICS, open_metrics
from tests.dashboard.resets.test_history import new_record
from tests.dashboard.scripted import Answers, name_server, scripted, success
from tests.dashboard.site import Site, dashboard

# It ends an attribute, a script, a style, a title and a comment, and begins each; without a slash, so that it
# can be a part of an address. The last characters turn a text around, and end a line and a header.
HOSTILE: Final = (
    "'\"><script>alert(1)<img src=x onerror=alert(1)><style>*{}<!----!>&lt;{{7*7}}\u202e\r\nX-Evil: 1"
)
# In a name of a client id, of a key and of a text there may be a slash, too.
CLOSING: Final = HOSTILE + "</script></title></style></textarea></svg>"
_MEANT: Final = frozenset({"/static/dashboard.js"})
_BEGUN_MS: Final = 1_700_000_000_000


class _Reader(HTMLParser):
    """Collects what a page must not have."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []
        self.texts: list[str] = []
        self._tag = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._tag = tag
        values = {name: value or "" for name, value in attrs}
        if tag in ("img", "style", "iframe", "object", "embed", "base"):
            self.faults.append(self.get_starttag_text() or tag)
        if tag == "script" and values.get("src") not in _MEANT:
            self.faults.append(self.get_starttag_text() or tag)
        for name, value in values.items():
            is_address = name in ("href", "src", "action", "data-events")
            if name.startswith("on") or (is_address and urlsplit(value).scheme not in ("", "data")):
                self.faults.append(f"{name}={value}")
            if is_address and any(character < "!" for character in value):
                self.faults.append(f"{name}={value}")

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        self.faults.append(f"<!--{data}-->")


def faults_of(page: str) -> list[str]:
    """Return what a browser would run or load because of a hostile text, and characters that do not print."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    text = "".join(reader.texts)
    return [*reader.faults, *(repr(each) for each in ("\u202e", "\r", "\x1b") if each in text)]


def test_the_reader_of_pages_finds_what_would_run() -> None:
    for page in (
        CLOSING,
        "<a href='javascript:alert(1)'>x</a>",
        "<p onclick=alert(1)>x</p>",
        "<a href='//evil.example\n'>x</a>",
        "<p>\u202e</p>",
    ):
        assert faults_of(page), page
    assert faults_of('<script src="/static/dashboard.js"></script><a href="/topics">x</a>') == []


def _broker(queue: MessageQueue) -> Answers:
    """Return the answers of a broker each of whose texts is hostile."""
    properties = "".join(f"{key}\x01{CLOSING}\x02" for key in ("KEYS", "TAGS", "RETRY_TOPIC", CLOSING))
    stored = record(0, CLOSING.encode(), topic=queue.topic, properties=properties.encode())
    subscribed = SubscriptionData(topic=CLOSING, sub_string=CLOSING, expression_type=CLOSING)
    connection = Connection(CLOSING, CLOSING, CLOSING, 433)
    info = ConsumerRunningInfo(
        {CLOSING: CLOSING, "PROP_CONSUME_TYPE": CLOSING, "PROP_CONSUMER_START_TIMESTAMP": "1"},
        [subscribed],
        {queue: ProcessQueueInfo(cached_msg_count=1, last_pull_timestamp=1, last_consume_timestamp=1)},
        {CLOSING: ConsumeStatus(consume_failed_msgs=1)},
        CLOSING,
    )
    commit = FencedCommit(_BEGUN_MS, CLOSING, CLOSING, CLOSING, 0, 1, 2, 3, 15, CLOSING, reason=CLOSING)
    stats = ConsumeStats({queue: OffsetWrapper(2, 1, _BEGUN_MS)})
    found = {
        RequestCode.GET_BROKER_RUNTIME_INFO: KVTable(
            {"brokerVersionDesc": CLOSING, CLOSING: CLOSING, "usageTopics": CLOSING, f"usage{CLOSING}": "1/2"}
        ),
        RequestCode.GET_TOPIC_STATS_INFO: TopicStatsTable({queue: TopicOffset(0, 2, _BEGUN_MS)}),
        RequestCode.GET_CONSUME_STATS: stats,
        RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: GroupList([CLOSING]),
        RequestCode.GET_CONSUMER_CONNECTION_LIST: ConsumerConnection([connection], {CLOSING: subscribed}),
        RequestCode.GET_CONSUMER_RUNNING_INFO: info,
        RequestCode.LIST_FENCED_COMMITS: FencedCommitList([commit], 1),
    }
    config = RemotingCommand(
        ResponseCode.SUCCESS, None, f"a={json.dumps(CLOSING)}\n{quote(CLOSING)}=1\n".encode()
    )
    place = RemotingCommand(ResponseCode.SUCCESS, SearchOffsetResponseHeader(0))
    return {code: lambda _, request, body=body: success(body) for code, body in found.items()} | {
        RequestCode.GET_BROKER_CONFIG: lambda _, request: config,
        RequestCode.PULL_MESSAGE: lambda _, request: pull_answer(ResponseCode.SUCCESS, 1, stored),
        RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: lambda _, request: place,
        RequestCode.VIEW_BROKER_STATS_DATA: _refuse,
        RequestCode.QUERY_MESSAGE: _refuse,
    }


def _refuse(_connection: object, _request: RemotingCommand) -> RemotingCommand:
    return RemotingCommand(ResponseCode.NO_PERMISSION, remark=CLOSING)


async def _first_event(site: Site, path: str) -> str:
    """Return the part of a live page that its first event brings."""
    reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(site.url).port)
    writer.write(f"GET {path}?live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    while not (line := await reader.readline()).startswith(b"data: "):
        assert line, path
    writer.close()
    await writer.wait_closed()
    return str(json.loads(line.removeprefix(b"data: ")))


async def _served(site: Site) -> None:
    """Ask for every page of the hostile cluster."""
    name, client = quote(HOSTILE, safe=""), quote(CLOSING, safe="")
    place = f"/topics/{name}/messages/{name}/0/0"
    live = ("/", f"/topics/{name}", f"/groups/{name}")
    shown = 0
    for path in (
        *live,
        f"/brokers/{name}/0",
        "/topics?system=1",
        f"/topics?q={name}",
        f"/topics/{name}/groups",
        f"/topics/{name}/send",
        f"/topics/{name}/messages",
        f"/topics/{name}/messages?by=key&q={client}",
        f"/topics/{name}/messages?by=id&q={client}",
        f"/topics/{name}/messages?by=time&at=0",
        f"/topics/{name}/messages?by=queue&broker={name}&queue=0&offset=0&x={client}",
        place,
        "/groups",
        f"/groups?q={name}",
        f"/groups/{name}/consumers",
        f"/groups/{name}/consumers/{client}",
        f"/groups/{name}/stacks",
        f"/groups/{name}/dead-letters",
        f"/groups/{name}/dead-letters?letter={client}/0/0",
        f"/groups/{name}/dead-letters?letter={client}",
        f"/groups/{name}/fenced",
        f"/groups/{name}/compare?with={client}&topic={name}",
        f"/groups/{name}/compare?with={name}",
        f"/groups/{name}/reset?topic={name}&to=earliest",
        f"/groups/{name}/reset?topic={name}&to=group&as={client}",
        f"/groups/{name}/reset?topic={client}&to={client}&at={client}&ago={client}",
        "/resets",
        f"/resets?q={name}",
        f"/resets/{name}",
        f"/resets/{new_record(1).id}",
        f"/resets/{new_record(1).id}?queue={client}",
        f"/races/{name}",
        f"/races/R1?case={client}&seed={client}",
        f"/{name}",
    ):
        page = await site.get(path)
        assert faults_of(page.text) == [], path
        assert "x-evil" not in page.headers, path
        shown += "&lt;img src=x onerror=alert(1)&gt;" in page.text
    # Most pages have the text; else this test would look at nothing.
    assert shown >= 28
    for path in live:
        part = await _first_event(site, path)
        assert "&lt;img" in part
        assert faults_of(part) == []
    body = await site.get(f"{place}/body")
    assert (body.status, body.text) == (200, CLOSING)
    disposition = body.headers["content-disposition"]
    assert disposition.startswith("attachment; filename=_")
    assert all(character.isalnum() or character in "_.-;= " for character in disposition)
    assert (body.headers["content-type"], body.headers["x-content-type-options"]) == (
        "application/octet-stream",
        "nosniff",
    )
    metrics = (await site.get("/metrics", Accept=OPEN_METRICS)).text
    labels = [
        value
        for family in open_metrics(metrics)
        for sample in family.samples
        for value in sample.labels.values()
    ]
    assert HOSTILE in labels
    # The form has what the visitor wrote again, as it was.
    written = {"csrf": "form-token", "body": "</textarea><script>alert(1)</script>", "keys": CLOSING}
    assert faults_of((await site.post(f"/topics/{name}/send", written)).text) == []
    letter = {"csrf": "form-token", "letter-1": f"{HOSTILE}/0/0"}
    resent = await site.post(f"/groups/{name}/dead-letters", letter)
    assert "<b>0 of 1</b> sent again" in resent.text
    assert faults_of(resent.text) == []


@pytest.mark.timeout(120)
async def test_no_text_of_a_peer_becomes_a_part_of_a_page_a_header_or_an_address(tmp_path: Path) -> None:
    kept = new_record(1)
    kept.group = kept.topic = kept.problem = kept.as_group = CLOSING
    kept.modes = {CLOSING: CLOSING}
    (row,) = kept.queues
    row.broker_name = row.consumer = row.holder = row.reason = CLOSING
    row.races = (CLOSING,)
    (tmp_path / f"{kept.id}.json").write_bytes(msgspec.json.encode(kept))
    (tmp_path / "20261124T120059-0000003b.json").write_text(CLOSING)
    queue = MessageQueue(HOSTILE, HOSTILE, 0)
    async with scripted(system_runtime(), "127.0.0.1", _broker(queue)) as broker:
        info = ClusterInfo({HOSTILE: BrokerData(HOSTILE, HOSTILE, {0: broker.address})}, {HOSTILE: {HOSTILE}})
        names = TopicList([HOSTILE, retry_topic(HOSTILE), dlq_topic(HOSTILE)])
        answers: Answers = {
            **name_server({HOSTILE: broker.address}),
            RequestCode.GET_BROKER_CLUSTER_INFO: lambda _, request: success(info),
            RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: lambda _, request: success(names),
        }
        async with (
            scripted(system_runtime(), "127.0.0.1", answers) as namesrv,
            dashboard(namesrv.address, history=tmp_path) as site,
        ):
            await _served(site)
