#!/usr/bin/env bash
# uvloop's create_subprocess_exec() knows no process_group, which asyncio's own passes on to subprocess.Popen.
#
# Package: uvloop 0.23.0; Python 3.11 or newer.
# Expected: uvloop is a drop-in replacement of asyncio's loop, so a program that starts a child in a process group of its own
# does so under both. start_new_session=True works with both, but makes a session, too.
# Seen: a ValueError under uvloop.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "needs Python 3.11 or newer" >&2; exit 2; }
python3 -m venv "$folder/env" && "$folder/env/bin/pip" install --quiet --disable-pip-version-check uvloop==0.23.0 || exit 2

cat >"$folder/show.py" <<'PYTHON'
import asyncio

import uvloop


async def start(loop: str) -> None:
    for option in ({"start_new_session": True}, {"process_group": 0}):
        (name,) = option
        try:
            process = await asyncio.create_subprocess_exec("true", **option)
            print(f"{loop}: {name}: exit status", await process.wait())
        except ValueError as error:
            print(f"{loop}: {name}: ValueError: {error}")


print("uvloop", uvloop.__version__)
asyncio.run(start("asyncio"))
uvloop.run(start("uvloop"))
PYTHON

"$folder/env/bin/python" "$folder/show.py" | diff - /dev/fd/3 3<<'SEEN'
uvloop 0.23.0
asyncio: start_new_session: exit status 0
asyncio: process_group: exit status 0
uvloop: start_new_session: exit status 0
uvloop: process_group: ValueError: unexpected kwargs: process_group
SEEN
