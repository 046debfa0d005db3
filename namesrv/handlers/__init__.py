"""Request handlers, one module per request code.

Each module's docstring says which behaviour of RocketMQ its ``handle`` keeps, changes or refuses. A bare
number in it is a response code; 1 is SYSTEM_ERROR.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from rewindmq.namesrv.context import NamesrvContext
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.remoting.connection import Connection, Handler, Reply
from rewindmq.protocol.remoting.handler_table import is_known, load_handlers

NamesrvHandler = Callable[[NamesrvContext, Connection, RemotingCommand], Reply]

HANDLERS: Final[Mapping[RequestCode, NamesrvHandler]] = load_handlers(__name__, __path__)


def bind_handlers(context: NamesrvContext) -> dict[int, Handler]:
    """Return the dispatch table of the profile's release; a server answers other codes with code 3."""
    profile = context.config.profile
    return {code: partial(handler, context) for code, handler in HANDLERS.items() if is_known(code, profile)}
