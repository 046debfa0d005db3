"""The version of RewindMQ, for every Python file and for the build.

The native kernel repeats it in ``speedups/Cargo.toml``, because Cargo reads no Python; a test compares them.
"""

from typing import Final

__version__: Final = "0.2.0"
