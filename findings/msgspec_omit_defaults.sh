#!/usr/bin/env bash
# msgspec leaves out a field if its value *is* the default, not if it equals the default.
#
# Package: msgspec 0.22.0.
# Expected: a struct with omit_defaults=True that equals Defaults() is encoded as Defaults() is: {}.
# Seen: a decoded 1000 and a decoded 0.0 are encoded, although both equal their defaults. A decoded 100 is left out, because
# Python has one object for each small integer. So a message that was decoded and encoded again grows by some of its defaults.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env" && "$folder/env/bin/pip" install --quiet --disable-pip-version-check msgspec==0.22.0 || exit 2

cat >"$folder/show.py" <<'PYTHON'
import msgspec


class Defaults(msgspec.Struct, omit_defaults=True):
    small: int = 100
    large: int = 1000
    zero: float = 0.0
    empty: str = ""


sent = b'{"small":100,"large":1000,"zero":0.0,"empty":""}'
decoded = msgspec.json.decode(sent, type=Defaults)
print("msgspec", msgspec.__version__)
print("equal:", decoded == Defaults())
print("made:", msgspec.json.encode(Defaults()).decode())
print("decoded:", msgspec.json.encode(decoded).decode())
PYTHON

"$folder/env/bin/python" "$folder/show.py" | diff - /dev/fd/3 3<<'SEEN'
msgspec 0.22.0
equal: True
made: {}
decoded: {"large":1000,"zero":0.0}
SEEN
