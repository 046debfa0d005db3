"""Makes blocking methods of the methods of asynchronous clients; types stay those of the original."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from rewindmq.sync.background_loop import background_loop

P = ParamSpec("P")
T = TypeVar("T")


class SyncClient:
    """Base of the synchronous clients: an asynchronous client, and the loop that it runs on.

    Attributes:
        client: the asynchronous client. Only the background loop may call it.
    """

    client: Any

    def _wrap(self, client_class: Callable[..., Any], *args: Any, **options: Any) -> None:
        self._loop = background_loop()
        self.client = self._loop.call(client_class, *args, **options)

    def start(self) -> None:
        """Start the client; ``with`` calls it. Raise what the asynchronous client's ``start`` raises."""
        self._loop.wait_for(self.client.start())
        self._loop.started(self.client)

    def shutdown(self) -> None:
        """Stop the client; do nothing if it does not run."""
        self._loop.wait_for(self.client.shutdown())
        self._loop.stopped(self.client)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()


class GroupClient(SyncClient):
    """Base of producers and consumers."""

    @property
    def group(self) -> str:
        """The producer or consumer group."""
        return str(self.client.group)

    @property
    def is_running(self) -> bool:
        """True from the start to the shutdown."""
        return bool(self.client.is_running)

    @property
    def client_id(self) -> str:
        """``ip@instanceName``; the name is final after ``start()``."""
        return str(self.client.client_id)


def takes_options_of(
    client_class: Callable[P, Any],
) -> Callable[[Callable[..., None]], Callable[Concatenate[Any, P], None]]:
    """Give an ``__init__`` the arguments of an asynchronous client's class, for type checkers only."""
    return lambda construct: construct


def blocking(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Any, P], T]:
    """Return a method that waits for the result of an asynchronous client's method."""

    @functools.wraps(method)
    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = self._loop.wait_for(method(self.client, *args, **kwargs))
        return result

    return call


def on_loop(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """Return a method that calls a plain method of an asynchronous client on the loop's thread."""

    @functools.wraps(method)
    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = self._loop.call(method, self.client, *args, **kwargs)
        return result

    return call
