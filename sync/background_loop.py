"""The background loop: one event loop in a daemon thread, shared by all synchronous clients."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol, TypeVar

from rewindmq.protocol.errors import ClientError

T = TypeVar("T")

# Seconds that clients which still run at the end of the interpreter have to stop.
EXIT_SECONDS: Final = 5.0


class Stoppable(Protocol):
    """A client of the loop."""

    async def shutdown(self) -> None: ...


class BackgroundLoop:
    """An event loop in a thread; the thread starts at the first call.

    Attributes:
        pid: the process that made it. A fork has no threads but its own, so it needs another loop.
    """

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        # Clients that were started and not stopped.
        self._running: weakref.WeakSet[Stoppable] = weakref.WeakSet()
        self._thread = threading.Thread(target=self._run, name="rewindmq-sync", daemon=True)
        self._thread.start()
        atexit.register(self._stop_clients)

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and return its result.

        An exception in the waiting thread, such as KeyboardInterrupt, cancels the coroutine.

        Raises:
            ClientError: the caller runs on the loop itself, in an async listener for example.
        """
        try:
            self._require_usable()
        except ClientError:
            work.close()
            raise
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def call(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Call a function on the loop and return its result; errors are those of ``wait_for``."""

        async def work() -> T:
            return function(*args, **kwargs)

        return self.wait_for(work())

    def started(self, client: Stoppable) -> None:
        """Remember a client that runs, to stop it at the end of the interpreter."""
        self._running.add(client)

    def stopped(self, client: Stoppable) -> None:
        """Forget a client that has stopped."""
        self._running.discard(client)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _require_usable(self) -> None:
        if os.getpid() != self.pid:
            raise ClientError(
                "the client was made before this process was forked, and its connections belong to the"
                " parent: make clients after the fork"
            )
        if threading.current_thread() is self._thread:
            raise ClientError(
                "a synchronous client was called on the event loop that runs it: make the listener a plain"
                " function, or use the client of `rewindmq`"
            )

    def _stop_clients(self) -> None:
        """Stop the clients that still run, as far as time permits, so that offsets are stored."""
        if os.getpid() != self.pid or not self._running:
            return

        async def stop() -> None:
            await asyncio.gather(*(client.shutdown() for client in self._running), return_exceptions=True)

        work = asyncio.run_coroutine_threadsafe(asyncio.wait_for(stop(), EXIT_SECONDS), self._loop)
        work.exception()


_guard = threading.Lock()
_loops: Final[dict[int, BackgroundLoop]] = {}


def background_loop() -> BackgroundLoop:
    """Return this process's loop; a forked process gets a new one."""
    with _guard:
        pid = os.getpid()
        if pid not in _loops:
            _loops.clear()
            _loops[pid] = BackgroundLoop()
        return _loops[pid]


def _after_fork() -> None:
    """Replace a lock that another thread of the parent may have held."""
    global _guard
    _guard = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
