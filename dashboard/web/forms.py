"""FormReader: reads the bodies of forms, with limits on their bytes, on those of all forms, and on time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request

from rewindmq.protocol.remoting.runtime import Timers
from rewindmq.protocol.remoting.state import CloseReason
from rewindmq.protocol.remoting.traffic.held_bytes import HeldBytes

# The largest message body that brokers accept, 4 MiB, may triple when a form encodes it.
MAX_FORM_BYTES: Final = 16 << 20
# Two of the largest forms.
MAX_UNFINISHED_BYTES: Final = 32 << 20
# Seconds for the whole form; 16 MiB need 2.3 Mbit/s.
FORM_SECONDS: Final = 60.0
# A form that is decoded takes its bytes several times.
MAX_LARGE: Final = 2
_LARGE_BYTES: Final = 64 << 10


class FormReader:
    """Reads forms; see ``protocol.remoting.traffic`` for the same limits of the servers."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._unfinished = HeldBytes("unfinished forms", MAX_UNFINISHED_BYTES, CloseReason.SLOW_FRAME)
        self._large = asyncio.Semaphore(MAX_LARGE)

    @asynccontextmanager
    async def reading(self, request: Request, most: int, too_long: str) -> AsyncIterator[bytes]:
        """Read the body of a request, which the block works on.

        Args:
            most: bytes.
            too_long: what to answer to a form that has more.

        Raises:
            HTTPException: 413, it has more bytes; 408, it did not come within ``FORM_SECONDS``; 503, the
                forms of all visitors have too many bytes, and this one has been unfinished for longest.
        """
        form = _Form(request)
        timer = self._timers.call_timeout(FORM_SECONDS, form.end, 408, _TOO_LATE)
        is_large = False
        try:
            try:
                async with form.limit:
                    body = await self._read(request, form, most, too_long)
                    if len(body) > _LARGE_BYTES:
                        is_large = await self._large.acquire()
            except TimeoutError:
                assert form.refusal is not None
                raise HTTPException(*form.refusal) from None
            finally:
                timer.cancel()
                self._unfinished.release(form)
            yield body
        finally:
            if is_large:
                self._large.release()

    async def _read(self, request: Request, form: _Form, most: int, too_long: str) -> bytes:
        body = bytearray()
        try:
            async for part in request.stream():
                body += part
                if len(body) > most:
                    raise HTTPException(413, too_long)
                self._unfinished.hold(form, len(body))
                if form.refusal is not None:
                    raise TimeoutError
            return bytes(body)
        finally:
            # The traceback of a refusal would keep it until the garbage collector runs.
            body.clear()


_TOO_LATE: Final = f"The form did not come within {FORM_SECONDS:g} s: send it again.\n"
_TOO_MUCH: Final = "The dashboard is reading too many forms: send this one again.\n"


class _Form:
    """A form that is being read.

    Attributes:
        limit: ends the reading.
        refusal: status and text of what ended it; None: nothing has.
    """

    def __init__(self, request: Request) -> None:
        client = request.client
        self.remote_address = f"{client.host}:{client.port}" if client else "unknown"
        self.limit = asyncio.timeout(None)
        self.refusal: tuple[int, str] | None = None

    def abort(self, reason: CloseReason) -> None:
        """Let go of its bytes: others need them."""
        self.end(503, _TOO_MUCH)

    def end(self, status: int, text: str) -> None:
        """End the reading with this refusal, unless another one has ended it already."""
        if self.refusal is None:
            self.refusal = (status, text)
            self.limit.reschedule(0.0)
