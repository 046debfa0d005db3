"""Clients of a cluster: name server, time scale, profile and seed are the cluster's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from typing import Any, Concatenate, ParamSpec, TypeVar

# The front door loads a class when it is first asked for: starting a cluster needs none of them.
import rewindmq

P = ParamSpec("P")
T = TypeVar("T")


def _in_group(
    load: Callable[[], Callable[Concatenate[str, str | None, P], T]], name: str, summary: str
) -> Callable[Concatenate[ClusterClients, str, P], T]:
    """A method that makes a producer or consumer."""

    def make(self: ClusterClients, group: str, /, *none: P.args, **options: P.kwargs) -> T:
        return load()(group, self.namesrv_address, *none, **self._with_own(options))

    return _named(make, name, summary, "group")


def _administrator(
    load: Callable[[], Callable[Concatenate[str | None, P], T]], name: str, summary: str
) -> Callable[Concatenate[ClusterClients, P], T]:
    """A method that makes an admin client."""

    def make(self: ClusterClients, /, *none: P.args, **options: P.kwargs) -> T:
        return load()(self.namesrv_address, *none, **self._with_own(options))

    return _named(make, name, summary)


def _named(function: Callable[P, T], name: str, summary: str, *parameters: str) -> Callable[P, T]:
    """Give a method what ``help`` shows."""
    shown = [Parameter(parameter, Parameter.POSITIONAL_ONLY) for parameter in ("self", *parameters)]
    options = Parameter("options", Parameter.VAR_KEYWORD)
    function.__signature__ = Signature([*shown, options])  # type: ignore[attr-defined]
    function.__name__, function.__qualname__ = name, f"ClusterClients.{name}"
    function.__doc__ = f"Make {summary}"
    return function


class ClusterClients:
    """Makes clients of a running cluster.

    They take over the cluster's name server, time scale, profile and seed. Keyword options are those of the
    class that is made, and count instead of the cluster's.
    """

    @property
    def namesrv_address(self) -> str:
        """What clients are given as NAMESRV_ADDR, ``host:port``."""
        raise NotImplementedError

    @property
    def client_options(self) -> Mapping[str, Any]:
        """The options that clients take over."""
        raise NotImplementedError

    producer = _in_group(lambda: rewindmq.Producer, "producer", "a ``Producer`` of a group.")
    transaction_producer = _in_group(
        lambda: rewindmq.TransactionProducer,
        "transaction_producer",
        "a ``TransactionProducer`` of a group; needs ``listener=``.",
    )
    push_consumer = _in_group(
        lambda: rewindmq.PushConsumer, "push_consumer", "a ``PushConsumer`` of a group."
    )
    pull_consumer = _in_group(
        lambda: rewindmq.PullConsumer, "pull_consumer", "a ``PullConsumer`` of a group."
    )
    lite_pull_consumer = _in_group(
        lambda: rewindmq.LitePullConsumer, "lite_pull_consumer", "a ``LitePullConsumer`` of a group."
    )
    admin = _administrator(lambda: rewindmq.AdminClient, "admin", "an ``AdminClient``.")

    def _with_own(self, options: Mapping[str, Any]) -> dict[str, Any]:
        own = dict(self.client_options)
        if options.get("runtime") is not None:
            # A runtime has its own.
            own = {name: value for name, value in own.items() if name not in ("time_scale", "seed")}
        return {**own, **options}
