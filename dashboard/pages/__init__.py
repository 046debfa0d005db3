"""The pages, one module each; a module's ``PAGES`` registers it."""

from __future__ import annotations

import importlib
import pkgutil

from rewindmq.dashboard.web.page import Page


def load_pages() -> tuple[Page, ...]:
    """Return the pages of every module of this package, in the order of the modules' names."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names]
    return tuple(page for module in modules for page in module.PAGES)
