"""download: bytes as a file, sent in pieces."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from starlette.responses import StreamingResponse

from rewindmq.protocol.remoting.runtime import Timers

# A body has up to 64 MiB. Writing all of it at once would hold the event loop.
PIECE_BYTES: Final = 64 << 10


def download(body: bytes, filename: str, timers: Timers) -> StreamingResponse:
    """Return a response that a browser saves as a file and never shows as a page.

    Args:
        filename: letters, digits, ``_``, ``.`` and ``-``.
        timers: let other tasks run after each piece.
    """

    async def pieces() -> AsyncIterator[bytes]:
        for begin in range(0, len(body), PIECE_BYTES):
            yield body[begin : begin + PIECE_BYTES]
            # A fast client takes each piece at once, so that sending never waits.
            await timers.sleep(0)

    headers = {
        "Content-Disposition": f"attachment; filename={filename}",
        # A browser with a shorter file knows that the rest is missing.
        "Content-Length": str(len(body)),
    }
    return StreamingResponse(pieces(), headers=headers, media_type="application/octet-stream")
