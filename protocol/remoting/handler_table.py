"""Loads the handlers of a server from a package with one module per request."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from rewindmq.protocol.code import RequestCode


def load_handlers(package: str, folders: Iterable[str]) -> Mapping[RequestCode, Callable[..., Any]]:
    """Return the handler of each request, in the order of the codes.

    Every module of the package has its request code in ``CODE`` and its handler in ``handle``.

    Args:
        package: the package's name.
        folders: the package's ``__path__``.
    """
    found: dict[RequestCode, Callable[..., Any]] = {}
    for info in pkgutil.iter_modules(folders):
        if not info.ispkg:
            module = importlib.import_module(f"{package}.{info.name}")
            assert module.CODE not in found, f"{module.CODE!r} has two handlers, {info.name} is one of them"
            found[module.CODE] = module.handle
    return MappingProxyType(dict(sorted(found.items())))
