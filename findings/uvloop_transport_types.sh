#!/usr/bin/env bash
# uvloop's transports are no asyncio.Transport, so a check with isinstance() fails where asyncio's own loop passes it.
#
# Package: uvloop 0.23.0.
# Expected: uvloop is a drop-in replacement of asyncio's loop. StreamWriter.transport is an asyncio.Transport there,
# and type checkers take it for that.
# Seen: under uvloop it is not even an asyncio.BaseTransport.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env" && "$folder/env/bin/pip" install --quiet --disable-pip-version-check uvloop==0.23.0 || exit 2

cat >"$folder/show.py" <<'PYTHON'
import asyncio

import uvloop


async def ask(loop: str) -> None:
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    for kind in (asyncio.Transport, asyncio.BaseTransport):
        print(f"{loop}: {kind.__name__}:", isinstance(writer.transport, kind))
    writer.close()
    server.close()


print("uvloop", uvloop.__version__)
asyncio.run(ask("asyncio"))
uvloop.run(ask("uvloop"))
PYTHON

"$folder/env/bin/python" "$folder/show.py" | diff - /dev/fd/3 3<<'SEEN'
uvloop 0.23.0
asyncio: Transport: True
asyncio: BaseTransport: True
uvloop: Transport: False
uvloop: BaseTransport: False
SEEN
