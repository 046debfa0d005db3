"""Rules for single requests: ``rmq.on(...)`` and what it makes of requests and responses."""

import asyncio
import warnings

import pytest

from rewindmq import Message, Producer, RequestTimeoutError, ResponseError
from rewindmq.protocol.code import ResponseCode
from rewindmq.testing import KitError, KitWarning, NotSeenError, Rmq
from rewindmq.testing.clusters.servers import Servers


async def test_a_reset_is_lost_while_its_notification_is_dropped(wired: Rmq) -> None:
    """The classic reset reaches the broker, but the notification (220) never reaches the consumer."""
    orders = await wired.topic("orders", queues=1)
    await orders.send_many([b"1", b"2"])
    async with wired.push("billing", orders) as billing:
        await billing.caught_up()
        async with wired.on("RESET_CONSUMER_CLIENT_OFFSET", group=billing).drop() as lost:
            await billing.reset(to="begin", mode="classic")
            await lost.met()
        await billing.nothing_more(within=15)
        assert len(billing.deliveries) == 2


async def test_a_held_request_passes_when_it_is_released(wired: Rmq) -> None:
    orders = await wired.topic("orders", queues=1)
    async with wired.producer("shop") as shop:
        held = await wired.on(
            "SEND_MESSAGE_V2", topic=orders, group=shop.group, queue=0, client="shop"
        ).hold()
        sending = asyncio.create_task(shop.send(Message(orders.name, b"x"), timeout=60))
        frame = await held.met()
        assert (frame.fields["topic"], frame.source, held.count) == (orders.name, "shop/1", 1)
        assert held.held == (frame,)
        assert await orders.read() == []
        held.release()
        await sending
        assert [message.body for message in await orders.read()] == [b"x"]
        with pytest.raises(KitError, match="were released or dropped before"):
            held.release()


async def test_a_held_request_is_dropped(wired: Rmq) -> None:
    orders = await wired.topic("orders", queues=1)
    async with wired.producer("shop", retry_times_when_send_failed=0) as shop:
        async with wired.on("SEND_MESSAGE_V2", topic=orders).hold() as held:
            sending = asyncio.create_task(shop.send(Message(orders.name, b"x"), timeout=1))
            await held.met()
            held.drop_held()
            with pytest.raises(RequestTimeoutError):
                await sending
        assert await orders.read() == []


async def test_a_request_fails_once_with_a_code(wired: Rmq) -> None:
    orders = await wired.topic("orders", queues=1)
    async with wired.producer(retry_times_when_send_failed=0) as producer:
        await wired.on("SEND_MESSAGE_V2", topic=orders).fail("SYSTEM_BUSY", "too many requests")
        with pytest.raises(ResponseError, match="too many requests") as raised:
            await producer.send(Message(orders.name, b"x"))
        assert raised.value.code == ResponseCode.SYSTEM_BUSY
        await producer.send(Message(orders.name, b"y"))
    assert [message.body for message in await orders.read()] == [b"y"]


async def test_a_producer_sends_again_if_an_error_replaces_the_response(wired: Rmq) -> None:
    orders = await wired.topic("orders", queues=1)
    async with wired.producer() as producer:
        await wired.on("SEND_MESSAGE_V2", topic=orders, direction="response").fail("SYSTEM_ERROR")
        await producer.send(Message(orders.name, b"x"))
    assert [message.body for message in await orders.read()] == [b"x", b"x"]


async def test_a_duplicated_send_is_stored_twice(wired: Rmq) -> None:
    orders = await wired.topic("orders", queues=1)
    async with wired.producer() as producer:
        await wired.on("SEND_MESSAGE_V2", topic=orders).duplicate()
        await producer.send(Message(orders.name, b"x"))
        await producer.send(Message(orders.name, b"y"))
    assert [message.body for message in await orders.read()] == [b"x", b"x", b"y"]


async def test_a_delay_counts_seconds_of_the_clusters_time(wired: Rmq) -> None:
    orders = await wired.topic("orders", queues=1)
    clock = wired.admin.runtime.clock
    async with wired.producer() as producer:
        await wired.on("SEND_MESSAGE_V2", topic=orders).delay(3)
        begin = clock.monotonic()
        await producer.send(Message(orders.name, b"x"), timeout=60)
        assert clock.monotonic() - begin >= 3


async def test_a_kept_rule_meets_all_requests_until_it_stops(wired: Rmq) -> None:
    orders = await wired.topic("orders", queues=1)
    async with wired.producer(retry_times_when_send_failed=0) as producer:
        rule = await wired.on("SEND_MESSAGE_V2", topic=orders, times=None).fail("SYSTEM_BUSY")
        for _ in range(3):
            with pytest.raises(ResponseError):
                await producer.send(Message(orders.name, b"x"))
        assert rule.count == 3
        rule.stop()
        await producer.send(Message(orders.name, b"y"))


async def test_a_rule_for_one_consumer_leaves_the_others_alone(wired: Rmq) -> None:
    orders = await wired.topic("orders", queues=2)
    async with wired.push("billing", orders) as billing:
        await billing.add_consumer()
        held = await wired.on("PULL_MESSAGE", topic=orders, client="billing/2", times=None).hold()
        await billing.ready()
        await held.met()
        assert {frame.source for frame in held.held} == {"billing/2"}
        held.release()
        await orders.send_many([b"1", b"2"])
        await billing.caught_up()


async def test_clients_of_the_application_are_met_too(wired: Rmq) -> None:
    """By the name "application", or by a name of the test's own."""
    orders = await wired.topic("orders", queues=1)
    for address, name in ((wired.namesrv_address, "application"), (await wired.address_for("shop"), "shop")):
        options = {**wired.client_options, "retry_times_when_send_failed": 0}
        async with Producer(wired.name("P"), address, **options) as producer:
            await wired.on("SEND_MESSAGE_V2", topic=orders, client=name).fail("SYSTEM_BUSY")
            with pytest.raises(ResponseError):
                await producer.send(Message(orders.name, b"x"))


async def test_a_rule_that_nothing_meets_fails_and_names_what_passed(wired: Rmq) -> None:
    orders = await wired.topic("orders", queues=1)
    async with wired.producer("shop") as shop:
        rule = await wired.on("SEND_MESSAGE_V2", topic="other").drop()
        await shop.send(Message(orders.name, b"x"))
        await shop.send(Message(orders.name, b"y"))
    with pytest.raises(NotSeenError) as raised:
        wired.check_faults()
    lines = str(raised.value).splitlines()
    assert lines[0] == "rmq.on('SEND_MESSAGE_V2', topic='other').drop(): nothing met it; passed:"
    assert lines[1] == (
        f"  SEND_MESSAGE_V2 request, client shop/1, server broker-a, group {shop.group},"
        f" topic {orders.name}, queue 0: 2 times"
    )
    with pytest.raises(
        NotSeenError, match=r"0 of 1 SEND_MESSAGE_V2 frames .* within 0.01 s; passed:\n  SEND"
    ):
        await rule.met(timeout=0.01)
    rule.optional()
    wired.check_faults()


async def test_the_end_of_async_with_fails_for_a_rule_that_nothing_met(wired: Rmq) -> None:
    with pytest.raises(NotSeenError, match="nothing met it; nothing passed"):
        async with wired.on("CHECK_TRANSACTION_STATE").drop():
            pass
    with pytest.raises(ZeroDivisionError):
        async with wired.on("CHECK_TRANSACTION_STATE").drop():
            raise ZeroDivisionError
    wired.check_faults()


async def test_a_rule_that_was_not_awaited_fails(wired: Rmq) -> None:
    rule = wired.on("PULL_MESSAGE").hold()
    with pytest.raises(KitError, match="write `await` before it"):
        rule.release()
    with pytest.raises(NotSeenError, match=r"never began; write `await rmq.on\('PULL_MESSAGE'\).hold\(\)`"):
        wired.check_faults()
    await rule
    with pytest.raises(KitError, match="has begun already"):
        await rule
    rule.optional()


@pytest.mark.parametrize(
    ("request_name", "options", "text"),
    [
        ("PULL_MESAGE", {}, "'PULL_MESAGE' is not a request of RocketMQ; near it: PULL_MESSAGE"),
        ("HEARTBEAT", {}, "near it: HEART_BEAT"),
        ("pull", {}, "PULL_MESSAGE"),
        (99_999, {}, "99999 is not a request of RocketMQ; docs/requests.md has the names"),
        ("PULL_MESSAGE", {"queue": 0}, "queue=0 needs a topic"),
        ("PULL_MESSAGE", {"topic": "t", "queue": -1}, "queue=-1: it must be a queue's number"),
        ("PULL_MESSAGE", {"times": 0}, "times=0: it must be 1 or more, or None"),
        ("PULL_MESSAGE", {"direction": "up"}, "direction='up': it must be 'request' or 'response'"),
        ("PULL_MESSAGE", {"server": "broker-z"}, "no server 'broker-z'; servers: namesrv, broker-a"),
    ],
)
async def test_wrong_arguments_are_named(
    wired: Rmq, request_name: str, options: dict[str, object], text: str
) -> None:
    with pytest.raises(KitError, match=text):
        wired.on(request_name, **options)  # type: ignore[arg-type]


async def test_wrong_codes_and_delays_are_named(wired: Rmq) -> None:
    requests = wired.on("PULL_MESSAGE")
    with pytest.raises(KitError, match=r"'SYSTEM_BUZY' is not a response code .* near it: SYSTEM_BUSY"):
        requests.fail("SYSTEM_BUZY")
    with pytest.raises(KitError, match="-1 is not a response code"):
        requests.fail(-1)
    with pytest.raises(KitError, match="SUCCESS is no failure"):
        requests.fail(0)
    with pytest.raises(KitError, match="must be more than 0"):
        requests.delay(0)
    rule = await requests.drop()
    with pytest.raises(KitError, match="keeps no frames; end it with stop"):
        rule.release()
    rule.optional()


async def test_a_test_without_wire_is_told_to_ask_for_it(rmq: Rmq) -> None:
    for call in (lambda: rmq.on("PULL_MESSAGE"), lambda: rmq.partition("broker-a"), rmq.heal):
        with pytest.raises(KitError, match=r"@pytest.mark.rewindmq\(wire=True\)"):
            call()


async def test_a_cluster_that_runs_elsewhere_has_no_wire(kit_cluster: Servers) -> None:
    elsewhere = Servers(kit_cluster.namesrv_address, kit_cluster.client_options)
    with pytest.raises(KitError, match="wire=True needs a cluster of the kit's own"):
        Rmq(elsewhere, wire=True)
    async with Rmq(elsewhere) as rmq:
        with pytest.raises(KitError, match=r"rmq.on needs a cluster of the kit's own.*--rewindmq-namesrv"):
            rmq.on("PULL_MESSAGE")


async def test_the_end_of_the_test_releases_held_frames_and_names_the_rule(kit_cluster: Servers) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", KitWarning)
        async with Rmq(kit_cluster, wire=True) as rmq:
            orders = await rmq.topic("orders", queues=1)
            billing = rmq.push("billing", orders)
            rule = await rmq.on("PULL_MESSAGE", topic=orders, direction="response", times=None).hold()
            async with billing:
                await orders.send(b"x")
                await rule.met()
    (warning,) = caught
    assert "frames were held by rmq.on('PULL_MESSAGE'" in str(warning.message)


async def test_a_client_may_start_while_the_name_server_is_down(wired: Rmq) -> None:
    async with wired.down("namesrv"):
        first, second = await asyncio.gather(wired.address_for("web"), wired.address_for("web"))
        assert first == second
