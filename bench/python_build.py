"""The interpreter of a benchmark, whose build affects every figure of pure Python."""

from __future__ import annotations

import platform
import sysconfig
from typing import Final

_OPTIONS: Final = ("--enable-optimizations", "--with-lto")


def describe_python() -> str:
    """Return the version and the compiler, and the options for speed among those of the build.

    Debian builds with a profile, too, but its interpreter does not report the option.
    """
    arguments = str(sysconfig.get_config_var("CONFIG_ARGS") or "")
    options = [option for option in _OPTIONS if option in arguments]
    return (
        f"{platform.python_implementation()} {platform.python_version()} ({platform.python_compiler()}),"
        f" build options: {' '.join(options) or 'none for speed reported'}"
    )
