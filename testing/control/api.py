"""Api: answers the requests of the control port."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Final

from rewindmq.cluster.errors import ClusterError
from rewindmq.protocol.errors import RewindMQError
from rewindmq.testing.control.bodies import NoBody, decode
from rewindmq.testing.control.faults import Faults
from rewindmq.testing.control.http_request import HttpError, HttpRequest
from rewindmq.testing.control.member_control import MemberControl
from rewindmq.testing.control.paths import Handlers, Paths
from rewindmq.testing.errors import KitError, NotSeenError

_log = logging.getLogger(__name__)


class Api:
    """Calls the handlers, turns their errors into HTTP's, and ends tests.

    Args:
        handlers: of all paths except ``settle``.
    """

    def __init__(self, faults: Faults, control: MemberControl, *handlers: Handlers) -> None:
        self._faults = faults
        self._control = control
        self._paths: Final = Paths(*handlers, {("POST", "settle"): self._settle})

    async def answer(self, request: HttpRequest) -> object:
        """Do what a request asks for, and return what is sent as JSON.

        Raises:
            HttpError: it was refused or has failed; the text is one that the sender can act on.
        """
        handler, values = self._paths.find(request)
        try:
            return await handler(values, request.body)
        except HttpError:
            raise
        except NotSeenError as error:
            raise HttpError(HTTPStatus.GATEWAY_TIMEOUT, str(error)) from None
        except KitError as error:
            raise HttpError(HTTPStatus.BAD_REQUEST, str(error)) from None
        except ClusterError as error:
            raise HttpError(HTTPStatus.CONFLICT, str(error)) from None
        except RewindMQError as error:
            raise HttpError(HTTPStatus.BAD_GATEWAY, f"the cluster refused: {error}") from None
        except Exception as error:
            _log.exception("%s /%s failed", request.method, "/".join(request.path))
            text = f"{type(error).__name__}: {error}; see what rewindmq up prints"
            raise HttpError(HTTPStatus.INTERNAL_SERVER_ERROR, text) from None

    async def _settle(self, values: tuple[str, ...], body: bytes) -> object:
        decode(body, NoBody)
        async with self._faults.changing:
            return {**self._faults.settle(), **await self._control.settle()}
