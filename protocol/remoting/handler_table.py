"""Loads the handlers of a server from a package with one module per request, and binds those of a release."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.profile import RELEASES, Profile

# Source: the constants of ``RequestCode`` in the published rocketmq-common 4.2.0 and 4.9.7. A code that is
# not here is in 4.2.0, or is RewindMQ's own.
SINCE: Final = MappingProxyType(
    {
        # Since 5.3.0 and 5.3.1.
        RequestCode.UPDATE_AND_CREATE_TOPIC_LIST: Profile.V53,
        RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: Profile.V53,
        RequestCode.QUERY_DATA_VERSION: Profile.V49,
        RequestCode.SEND_REPLY_MESSAGE: Profile.V49,
        RequestCode.SEND_REPLY_MESSAGE_V2: Profile.V49,
        RequestCode.ADD_WRITE_PERM_OF_BROKER: Profile.V49,
        RequestCode.GET_ALL_PRODUCER_INFO: Profile.V49,
        RequestCode.DELETE_EXPIRED_COMMITLOG: Profile.V49,
        RequestCode.GET_TOPIC_CONFIG: Profile.V53,
        RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG: Profile.V53,
        RequestCode.LITE_PULL_MESSAGE: Profile.V53,
        RequestCode.QUERY_ASSIGNMENT: Profile.V53,
        RequestCode.SET_MESSAGE_REQUEST_MODE: Profile.V53,
        RequestCode.POP_MESSAGE: Profile.V53,
        RequestCode.ACK_MESSAGE: Profile.V53,
        RequestCode.BATCH_ACK_MESSAGE: Profile.V53,
        RequestCode.PEEK_MESSAGE: Profile.V53,
        RequestCode.CHANGE_MESSAGE_INVISIBLETIME: Profile.V53,
        RequestCode.NOTIFICATION: Profile.V53,
        RequestCode.POLLING_INFO: Profile.V53,
        # Since 5.3.2.
        RequestCode.RECALL_MESSAGE: Profile.V53,
        # Since 5.0.0.
        RequestCode.GET_TIMER_CHECK_POINT: Profile.V53,
        RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC: Profile.V53,
        RequestCode.GET_BROKER_HA_STATUS: Profile.V53,
        RequestCode.RESET_MASTER_FLUSH_OFFSET: Profile.V53,
    }
)


def load_handlers(package: str, folders: Iterable[str]) -> Mapping[RequestCode, Callable[..., Any]]:
    """Return the handler of each request, in the order of the codes.

    Every module of the package has its request code in ``CODE`` and its handler in ``handle``.

    Args:
        package: the package's name.
        folders: the package's ``__path__``.
    """
    found: dict[RequestCode, Callable[..., Any]] = {}
    for info in pkgutil.iter_modules(folders):
        if not info.ispkg:
            module = importlib.import_module(f"{package}.{info.name}")
            assert module.CODE not in found, f"{module.CODE!r} has two handlers, {info.name} is one of them"
            found[module.CODE] = module.handle
    return MappingProxyType(dict(sorted(found.items())))


def is_known(code: RequestCode, profile: Profile) -> bool:
    """Return whether the profile's release handles the request; others return REQUEST_CODE_NOT_SUPPORTED."""
    return RELEASES.index(profile.release) >= RELEASES.index(SINCE.get(code, Profile.V42))
