"""Clients of a cluster: name server, time scale, profile and seed are the cluster's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar

# ``rewindmq`` loads a client class at its first use: a cluster starts without any of them.
import rewindmq

P = ParamSpec("P")
T = TypeVar("T")


def _typed_like_client(
    client_class: Callable[[], Callable[Concatenate[str, str | None, P], T]],
) -> Callable[[Callable[..., T]], Callable[Concatenate[ClusterClients, str, P], T]]:
    """Give a method the keyword options of a producer or consumer class, for type checkers only.

    ``client_class`` is never called: a lambda names the class without loading it.
    """
    return lambda method: method


def _typed_like_admin_client(
    client_class: Callable[[], Callable[Concatenate[str | None, P], T]],
) -> Callable[[Callable[..., T]], Callable[Concatenate[ClusterClients, P], T]]:
    """Do the same for a class that takes no group."""
    return lambda method: method


class ClusterClients:
    """Creates clients of a running cluster.

    Each client uses the cluster's name server, time scale, profile and seed. Keyword options are those of the
    client's class and override the cluster's.
    """

    @property
    def namesrv_address(self) -> str:
        """The value that clients take as NAMESRV_ADDR, ``host:port``."""
        raise NotImplementedError

    @property
    def client_options(self) -> Mapping[str, Any]:
        """The options that each client inherits from the cluster."""
        raise NotImplementedError

    @_typed_like_client(lambda: rewindmq.Producer)
    def producer(self, group: str, /, **options: Any) -> rewindmq.Producer:
        """Create a ``Producer`` of a group."""
        return rewindmq.Producer(group, self.namesrv_address, **self._with_inherited(options))

    @_typed_like_client(lambda: rewindmq.TransactionProducer)
    def transaction_producer(self, group: str, /, **options: Any) -> rewindmq.TransactionProducer:
        """Create a ``TransactionProducer`` of a group; ``listener=`` is required."""
        return rewindmq.TransactionProducer(group, self.namesrv_address, **self._with_inherited(options))

    @_typed_like_client(lambda: rewindmq.PushConsumer)
    def push_consumer(self, group: str, /, **options: Any) -> rewindmq.PushConsumer:
        """Create a ``PushConsumer`` of a group."""
        return rewindmq.PushConsumer(group, self.namesrv_address, **self._with_inherited(options))

    @_typed_like_client(lambda: rewindmq.PullConsumer)
    def pull_consumer(self, group: str, /, **options: Any) -> rewindmq.PullConsumer:
        """Create a ``PullConsumer`` of a group."""
        return rewindmq.PullConsumer(group, self.namesrv_address, **self._with_inherited(options))

    @_typed_like_client(lambda: rewindmq.LitePullConsumer)
    def lite_pull_consumer(self, group: str, /, **options: Any) -> rewindmq.LitePullConsumer:
        """Create a ``LitePullConsumer`` of a group."""
        return rewindmq.LitePullConsumer(group, self.namesrv_address, **self._with_inherited(options))

    @_typed_like_admin_client(lambda: rewindmq.AdminClient)
    def admin(self, /, **options: Any) -> rewindmq.AdminClient:
        """Create an ``AdminClient``."""
        return rewindmq.AdminClient(self.namesrv_address, **self._with_inherited(options))

    def _with_inherited(self, options: Mapping[str, Any]) -> dict[str, Any]:
        inherited = dict(self.client_options)
        if options.get("runtime") is not None:
            # A runtime has its own time scale and random generator, which the cluster's must not override.
            inherited = {
                name: value for name, value in inherited.items() if name not in ("time_scale", "seed")
            }
        return {**inherited, **options}
