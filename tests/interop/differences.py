"""Where an outcome with our cluster differs from that with the real one, and why it may.

A key is a feature and the member of its outcome; a difference that is not listed here fails the suite, and so
does an entry that no run needs.
"""

from __future__ import annotations

from typing import Final

EXPLAINED: Final[dict[tuple[str, str], str]] = {}
