"""Rmq: a test's access to its cluster; it makes topics, groups and clients, and removes them at the end."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import warnings
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rewindmq.client.admin.admin_client import AdminClient
from rewindmq.client.core.lifecycle import Client
from rewindmq.client.produce.producer import Producer
from rewindmq.client.produce.transaction import TransactionListener
from rewindmq.client.produce.transaction_producer import TransactionProducer
from rewindmq.protocol.body.registration import TopicConfig
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.limits import MAX_QUEUE_NUMS
from rewindmq.protocol.names import dlq_topic, retry_topic
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.testing.clusters.servers import Servers, log_sizes, logs_since
from rewindmq.testing.errors import KitError, KitWarning
from rewindmq.testing.handles.context import Context
from rewindmq.testing.handles.existing_topic import has_topic
from rewindmq.testing.handles.group import Group
from rewindmq.testing.handles.mark import Mark
from rewindmq.testing.handles.pop_group import PopGroup
from rewindmq.testing.handles.server_control import ServerControl
from rewindmq.testing.handles.topic import Topic
from rewindmq.testing.handles.watched_group import WatchedGroup
from rewindmq.testing.messages.kit_message import KitMessage
from rewindmq.testing.messages.listeners import Listener
from rewindmq.testing.waiting.checks import Check, condition_of, name_of
from rewindmq.testing.waiting.waiter import Waiter
from rewindmq.testing.wire.wire import Wire
from rewindmq.testing.wire.wire_control import WireControl
from rewindmq.testing.wire.wired_clients import WiredProducer, WiredTransactionProducer


class Rmq(WireControl, ServerControl):
    """The cluster of one test.

    Names of topics and groups get a suffix that no other test has. At the end, the kit stops the test's
    clients, deletes its topics and groups, and starts the processes again that the test ended.

    Args:
        wire: put a proxy between each client and the servers, for ``on``, ``partition`` and ``slow_link``.

    Attributes:
        namesrv_address: ``host:port`` of the name servers, for clients of the application.
        time_scale: factor on every scheduled wait of the cluster.
        admin: a running ``AdminClient``.
    """

    admin: AdminClient
    # The event loop of the fixture; set when the test starts.
    _loop: asyncio.AbstractEventLoop

    def __init__(self, servers: Servers, *, wire: bool = False) -> None:
        if wire:
            servers.require_local("wire=True")
        self._servers = servers
        self._token = servers.new_token()
        self._admin = AdminClient(servers.namesrv_address, **servers.options_for("the kit"))
        runtime = self._admin.runtime
        self._waiter = Waiter(runtime, servers.poll_intervals)
        # A classic reset can be lost, so a test would fail by chance. RocketMQ's brokers know no other mode.
        mode = ResetMode.FENCED if servers.is_own else None
        self._context = Context(self._admin, runtime, self._waiter, self._own_producer, mode)
        self._producer: Producer | None = None
        self._producer_starts = asyncio.Lock()
        self._clients: list[Client] = []
        self._groups: list[Group] = []
        self._wire = Wire(runtime, servers.namesrv_address) if wire else None
        self._namesrv_address = servers.namesrv_address
        # Names as the brokers know them, to be deleted at the end.
        self._topic_names: dict[str, None] = {}
        self._group_names: dict[str, None] = {}
        # The messages sent before each snapshot.
        self._sent: dict[str, dict[str, KitMessage]] = {}
        self._log_sizes = log_sizes(servers)
        self._cluster_name = ""
        self._is_checked = False

    @property
    def namesrv_address(self) -> str:
        return self._namesrv_address

    @property
    def time_scale(self) -> float:
        return self._context.runtime.clock.scale

    @property
    def client_options(self) -> dict[str, Any]:
        """The options that clients of the application need, such as ``time_scale`` and ``profile``."""
        return dict(self._application_options)

    @functools.cached_property
    def _application_options(self) -> dict[str, Any]:
        return self._servers.options_for("the application")

    def now_ms(self) -> int:
        """Return the time of the brokers' clocks, in ms since 1970; ``travel`` moves it."""
        return self._context.runtime.clock.now_ms() + self._servers.ahead_ms

    def name(self, name: str) -> str:
        """Return a name that no other test has: ``name`` and a suffix."""
        return f"{name}-{self._token}"

    # Topics and messages.

    async def topic(self, name: str, *, queues: int = 4, exact: bool = False) -> Topic:
        """Create a topic at every broker, and wait until the name server has its route.

        Args:
            queues: number of queues at each broker, 1 to 65,535.
            exact: use the name as it is, for an application that has the name built in. In a running
                cluster, the kit uses a topic of that name as it is, and does not delete it at the end.

        Raises:
            KitError: ``queues`` is out of range; or the running cluster has the topic with another number.
            RewindMQError: a broker refused.
        """
        if not 1 <= queues <= MAX_QUEUE_NUMS:
            raise KitError(f"queues must be 1 to {MAX_QUEUE_NUMS}, not {queues}")
        full = name if exact else self.name(name)
        masters = await self._masters()
        if self._may_delete(exact):
            self._topic_names[full] = None
        elif await has_topic(self._admin, full, queues, masters):
            return Topic(self._context, full, queues)
        config = TopicConfig(full, read_queue_nums=queues, write_queue_nums=queues)
        for address in masters.values():
            await self._admin.topics.create_and_update_topic_config(address, config)

        async def condition() -> str | None:
            route = await self._admin.topics.examine_topic_route_info(full)
            missing = masters.keys() - {queue.broker_name for queue in route.queue_datas}
            return f"not at {', '.join(sorted(missing))}" if missing else None

        await self._waiter.until(condition, f"topic {full} has a route")
        return Topic(self._context, full, queues)

    async def mark(self) -> Mark:
        """Return a moment: messages sent before it are older, messages sent after it are not.

        It waits for the next millisecond of the clock.
        """
        clock = self._context.runtime.clock
        at_ms = clock.now_ms() + 1
        ahead_ms = self._servers.ahead_ms

        async def condition() -> str | None:
            return None if clock.now_ms() >= at_ms else "the clock stands still"

        await self._waiter.until(condition, "the next millisecond")
        return Mark(at_ms + ahead_ms, len(self._context.sent))

    # Clients.

    def push(
        self,
        group: str,
        topic: Topic | str,
        listener: Listener | None = None,
        *,
        expression: str = "*",
        exact: bool = False,
        **options: Any,
    ) -> Group:
        """Return a group of push consumers with a concurrent listener; ``async with`` starts it.

        Args:
            listener: the application's, called as ``listener(messages)``; None accepts every message.
            expression: ``*``, or tags separated by ``||``.
            exact: use the group's name as it is. In a running cluster, the kit does not delete the group.
            options: of ``PushConsumer``. ``consume_from`` is "first" unless given: the group gets messages
                that were sent before it started.

        Raises:
            KitError: the listener cannot be called with the arguments; or the group is to pop.
        """
        return self._group(group, topic, listener, False, expression, exact, options)

    def orderly(
        self,
        group: str,
        topic: Topic | str,
        listener: Listener | None = None,
        *,
        expression: str = "*",
        exact: bool = False,
        **options: Any,
    ) -> Group:
        """Do the same with an orderly listener, called as ``listener(messages)`` or with a context."""
        return self._group(group, topic, listener, True, expression, exact, options)

    def group(self, name: str, topic: Topic | str) -> WatchedGroup:
        """Return a handle to a group whose consumers belong to the application; ``name`` is used as it is.

        At the end of the test, the kit deletes the group with its offsets if the cluster is the kit's own.
        """
        self._servers.consumer_starts()
        if self._servers.is_own:
            self._group_names[name] = None
        return WatchedGroup(self._context, name, str(topic))

    def pop(
        self,
        group: str,
        topic: Topic | str,
        *,
        invisible: float = 60.0,
        expression: str = "*",
        order: bool = False,
        exact: bool = False,
    ) -> PopGroup:
        """Return a group whose messages the test itself pops and acknowledges, with single requests.

        The brokers need ``profile="v53"``. For example::

            workers = rmq.pop("workers", jobs)
            first, second = await workers.take(2)
            await first.ack()
            await workers.expire(second)
            (again,) = await workers.take()
            assert (again.message, again.attempt) == (second.message, 2)

        Args:
            invisible: seconds of the cluster's time in which nobody else gets a popped message.
            expression: ``*``, or tags separated by ``||``.
            order: pop each queue in order.
            exact: use the group's name as it is. In a running cluster, the kit does not delete the group.

        Raises:
            KitError: ``invisible`` is not above 0.
        """
        full = group if exact else self.name(group)
        if self._may_delete(exact):
            self._group_names[full] = None
        return PopGroup(
            self._context,
            full,
            str(topic),
            invisible=invisible,
            expression=expression,
            order=order,
            travel_to=self.travel_to,
        )

    def producer(self, group: str = "producer", **options: Any) -> Producer:
        """Return a producer: ``async with`` starts and stops it; at the latest the test's end does."""
        options = {**self._servers.options_for(f"producer {group}"), **options}
        producer: Producer
        if self._wire is None:
            producer = Producer(self.name(group), self.namesrv_address, **options)
        else:
            producer = WiredProducer(self.name(group), self.namesrv_address, **options)
            producer.entrance = functools.partial(self._wire.next_entrance, group)
        self._clients.append(producer)
        return producer

    def transaction_producer(
        self, listener: TransactionListener, group: str = "transactions", **options: Any
    ) -> TransactionProducer:
        """Do the same for transactional messages."""
        options = {**self._servers.options_for(f"producer {group}"), **options, "listener": listener}
        producer: TransactionProducer
        if self._wire is None:
            producer = TransactionProducer(self.name(group), self.namesrv_address, **options)
        else:
            producer = WiredTransactionProducer(self.name(group), self.namesrv_address, **options)
            producer.entrance = functools.partial(self._wire.next_entrance, group)
        self._clients.append(producer)
        return producer

    # Waits.

    async def eventually(self, check: Check, timeout: float | None = None) -> None:
        """Wait until ``check()`` returns a true value.

        It is called after each delivery, and every 20 ms. It may be async, and may raise AssertionError.

        Args:
            timeout: real seconds; None: 20 s and 60 s of the cluster's time.

        Raises:
            NotSeenError: not within the timeout; the text has what the check returned last.
        """
        await self._waiter.until(condition_of(check), name_of(check), timeout, is_local=True)

    async def always(self, check: Check, within: float = 10.0) -> None:
        """Require that ``check()`` returns a true value for ``within`` seconds of the cluster's time.

        Raises:
            NotSeenError: it did not.
        """
        await self._waiter.while_holding(condition_of(check), name_of(check), within, is_local=True)

    async def leads_to(
        self, cause: Check, effect: Check, *, within: float = 10.0, timeout: float | None = None
    ) -> None:
        """Wait for ``cause()``, then require that ``effect()`` follows.

        Args:
            within: seconds of the cluster's time from the cause to the effect.
            timeout: real seconds for the cause.

        Raises:
            NotSeenError: the cause did not come, or the effect not in time.
        """
        await self.eventually(cause, timeout)
        await self._waiter.until(
            condition_of(effect),
            f"{name_of(cause)} leads to {name_of(effect)}",
            within * self.time_scale,
            is_local=True,
        )

    # Snapshots of the cluster.

    @property
    def snapshots(self) -> list[str]:
        """The names of the cluster's snapshots; tests that share the cluster share them.

        Raises:
            KitError: the cluster is not the kit's own.
        """
        return self._servers.require_local("a snapshot").snapshots()

    async def snapshot(self, name: str) -> None:
        """Take a snapshot of the cluster: messages, offsets and everything else that its brokers store.

        Raises:
            KitError: the cluster is not the kit's own.
            ClusterError: the name is invalid, or a process does not run or is paused.
        """
        await self._servers.snapshot(name)
        self._sent[name] = dict(self._context.sent)

    async def restore(self, name: str) -> None:
        """Put the cluster back to a snapshot. Producers and ``rmq.admin`` connect again by themselves.

        Raises:
            KitError: a group of the test still runs, or the cluster is not the kit's own.
            ClusterError: there is no such snapshot, or a process did not start.
        """
        if running := [group.name for group in self._groups if group.is_running]:
            raise KitError(
                f"the test restores a snapshot while consumers of {', '.join(running)} are running; they"
                " would store their offsets in it: leave the group's `async with` statement before"
            )
        await self._servers.restore_snapshot(name)
        self._context.sent.clear()
        self._context.sent.update(self._sent.get(name, {}))
        await self._registered()

    async def save_snapshot(self, name: str, path: Path | str) -> None:
        """Write a snapshot to one file, for the option ``snapshot`` or ``load_snapshot``."""
        await self._servers.require_local("a snapshot").save_snapshot(name, path)

    async def load_snapshot(self, name: str, path: Path | str) -> None:
        """Read a file of ``save_snapshot`` as the snapshot ``name``.

        Raises:
            KitError: the cluster is not the kit's own.
            ClusterError: the file cannot be used; the text says why.
        """
        await self._servers.load_snapshot(name, path)

    # Start and end of the test.

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        await self._servers.begin()
        await self._admin.start()
        self.admin = self._admin
        if self._wire is not None:
            try:
                self._namesrv_address = await self._open_wire()
            except BaseException:
                await self._admin.shutdown()
                raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
        if error is None:
            self.check_faults()

    async def close(self) -> None:
        """Stop what the test has started, and delete what it has created.

        A group that still runs is stopped, and a frame that is still held is released, with a ``KitWarning``.
        """
        holding = self._wire.settle() if self._wire is not None else []
        forgotten = [group.name for group in self._groups if group.is_running]
        # All of it happens, in the reverse order, even if a part fails.
        async with contextlib.AsyncExitStack() as ending:
            ending.push_async_callback(self._admin.shutdown)
            ending.push_async_callback(self._delete)
            if self._wire is not None:
                ending.push_async_callback(self._wire.close)
            for client in self._clients:
                ending.push_async_callback(client.shutdown)
            for group in self._groups:
                ending.push_async_callback(group.stop)
            if await self._servers.restore():
                await self._registered()
        if forgotten:
            warnings.warn(
                f"the test ended while consumers of {', '.join(forgotten)} were running:"
                " leave the group's `async with` statement, or call stop()",
                KitWarning,
                stacklevel=2,
            )

        if holding:
            warnings.warn(
                f"the test ended while frames were held by {', '.join(map(str, holding))}: call release()",
                KitWarning,
                stacklevel=2,
            )

    def logs(self) -> dict[str, str]:
        """Return what each process of the cluster has logged since the test began, at most 16 KiB of each."""
        return logs_since(self._servers, self._log_sizes)

    # Implementation.

    def _group(
        self,
        group: str,
        topic: Topic | str,
        listener: Listener | None,
        is_orderly: bool,
        expression: str,
        exact: bool,
        options: dict[str, Any],
    ) -> Group:
        if options.get("request_mode") == "pop":
            raise KitError(
                "the waits of push groups are about queues that consumers own: start a PushConsumer with"
                ' request_mode="pop" and the group rmq.pop(...).name, and wait with acked()'
            )

        def consumer_options(number: int) -> dict[str, Any]:
            self._servers.consumer_starts()
            own = self._servers.options_for(f"consumer {number} of group {group}")
            return {"consume_from": "first", **own, **options}

        full = group if exact else self.name(group)
        made = Group(
            self._context,
            full,
            str(topic),
            listener,
            is_orderly=is_orderly,
            expression=expression,
            options=consumer_options,
            max_reconsume_times=options.get("max_reconsume_times"),
            entrance=functools.partial(self._entrance, group),
            must_exist=str(topic) not in self._topic_names,
        )
        self._groups.append(made)
        if self._may_delete(exact):
            self._group_names[full] = None
        return made

    def _may_delete(self, exact: bool) -> bool:
        """Return False for an exact name in a running cluster: the topic or group may not be the test's."""
        return self._servers.is_own or not exact

    async def _entrance(self, client: str) -> str:
        """Return the name-server address of the next consumer of a group."""
        if self._wire is None:
            return self.namesrv_address
        return await self._wire.next_entrance(client)

    async def _own_producer(self) -> Producer:
        """Return the producer of the test's topics; the first call starts it. It bypasses the wire."""
        async with self._producer_starts:
            if self._producer is None:
                options = self._servers.options_for("producer kit")
                producer = Producer(self.name("kit"), self._servers.namesrv_address, **options)
                self._clients.append(producer)
                await producer.start()
                self._producer = producer
            return self._producer

    async def _masters(self) -> dict[str, str]:
        """Return the address of each master by broker name."""
        if asyncio.get_running_loop() is not self._loop:
            raise KitError("the test runs on another event loop than the fixture rmq: omit its loop_scope")
        if not self._cluster_name:
            info = await self._admin.brokers.examine_broker_cluster_info()
            names = list(info.cluster_addr_table)
            if len(names) != 1:
                raise KitError(f"the kit needs a name server of one cluster, but it knows {names or 'none'}")
            self._cluster_name = names[0]
        return dict(await self._admin.brokers.master_addresses(self._cluster_name))

    async def _registered(self) -> None:
        """Wait until each broker that runs is registered; a new name server knows none at first."""
        wanted = self._servers.running_masters()

        async def condition() -> str | None:
            missing = wanted - (await self._masters()).keys()
            return f"not registered: {', '.join(sorted(missing))}" if missing else None

        if wanted and self._servers.is_namesrv_running:
            await self._waiter.until(condition, "the brokers are registered")

    async def _delete(self) -> None:
        topics = [*self._topic_names]
        for group in self._group_names:
            topics += [retry_topic(group), dlq_topic(group)]
        if not topics or self._servers.is_for_one_test:
            return
        # A broker that is gone keeps them; the next test has other names.
        with contextlib.suppress(RewindMQError):
            masters = await self._masters()
            for group in self._group_names:
                for address in masters.values():
                    with contextlib.suppress(RewindMQError):
                        await self._admin.groups.delete_subscription_group(address, group, remove_offset=True)
            for topic in topics:
                with contextlib.suppress(RewindMQError):
                    await self._admin.topics.delete_topic(self._cluster_name, topic)
