"""Parts of the dashboard's pages: plots, subscriptions that differ, secrets, live parts."""

import asyncio
from urllib.parse import urlsplit

import pytest

from rewindmq.dashboard.data.answer import Answer
from rewindmq.dashboard.data.cluster_source import BrokerState
from rewindmq.dashboard.data.consumers import ConnectedConsumer, GroupConsumers
from rewindmq.dashboard.pages.clusters import broker_row, without_secrets
from rewindmq.dashboard.web.plot import line_plot, spark_line
from rewindmq.protocol.body.connection import Connection
from rewindmq.protocol.body.running_info import ConsumerRunningInfo
from rewindmq.protocol.subscription import build_subscription_data
from tests.dashboard.site import dashboard


@pytest.mark.parametrize("values", [[0, 0], [5, 0], [0, 10**15], [-3, 7]])
def test_a_plot_stays_in_its_box(values: list[int]) -> None:
    plot = line_plot([0, 1000], values)
    assert plot is not None
    for point in plot.points.split():
        x, y = map(float, point.split(","))
        assert 0 <= x <= plot.width
        assert 0 <= y <= plot.height


def test_a_plot_needs_two_samples_and_a_small_one_has_few_points() -> None:
    assert line_plot([1], [1]) is None
    plot = spark_line([*range(1000)], [*range(1000)])
    assert plot is not None
    assert len(plot.points.split()) <= 33


def _consumer(client: str, expression: str) -> ConnectedConsumer:
    subscribed = [build_subscription_data("t", expression), build_subscription_data("%RETRY%g", "*")]
    info = ConsumerRunningInfo(subscription_set=subscribed)
    return ConnectedConsumer(Connection(client, "127.0.0.1:1"), info=Answer(info))


def test_subscriptions_differ_if_their_tags_do_not_if_only_their_order_does() -> None:
    same = GroupConsumers({"a": _consumer("a", "x || y"), "b": _consumer("b", "y||x")})
    assert same.differing() == []
    differing = GroupConsumers({"a": _consumer("a", "x"), "b": _consumer("b", "x || y")})
    assert differing.differing() == ["t"]
    silent = ConnectedConsumer(Connection("c", "127.0.0.1:1"), info=Answer(None, "no answer within 2 s"))
    assert GroupConsumers({"a": _consumer("a", "x"), "c": silent}).differing() == []


def test_no_secret_of_a_configuration_is_shown() -> None:
    config = {
        "brokerName": "a",
        "innerClientAuthenticationCredentials": '{"secretKey":"s3cret"}',
        "initAuthenticationUser": '{"password":"s3cret"}',
        "tlsServerKeyPassword": "s3cret",
        "secretKey": "",
    }
    shown = without_secrets(config)
    assert "s3cret" not in str(shown)
    assert shown["brokerName"] == "a"
    assert shown["secretKey"] == ""


async def test_a_live_part_is_sent_at_once_and_ends_with_the_server(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with dashboard("127.0.0.1:1") as site:
        reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(site.url).port)
        writer.write(b"GET /?live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        async with asyncio.timeout(30):
            assert b"text/event-stream" in await reader.readuntil(b"\r\n\r\n")
            assert b"The name server did not answer" in await reader.readuntil(b"\n\n")
    # uvicorn would write that it ended the page after its time.
    assert capsys.readouterr().err == ""
    await asyncio.wait_for(reader.read(), 30)
    writer.close()
    await writer.wait_closed()


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "1e999", "", "x", "\u00b2/3"])
def test_what_no_broker_should_say_of_itself_leaves_its_row_empty(text: str) -> None:
    stats = dict.fromkeys(
        (
            "putTps",
            "getTransferedTps",
            "msgPutTotalTodayNow",
            "msgPutTotalTodayMorning",
            "commitLogDiskRatio",
        ),
        text,
    )
    row = broker_row(BrokerState("c", "b", 0, "127.0.0.1:1", Answer(stats)))
    assert (row["put"], row["got"], row["today"], row["disk"]) == (None, None, None, None)
