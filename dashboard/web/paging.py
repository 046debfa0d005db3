"""Paging: one page of a long list, chosen by the address's ``q`` (part of the name) and ``page``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

PAGE_SIZE: Final = 50


@dataclass(frozen=True)
class Paging:
    """One page of a list.

    Attributes:
        page: from 1 to ``pages``.
        total: matching names on all pages.
    """

    names: Sequence[str]
    wanted: str
    page: int
    pages: int
    total: int


def paging(names: Sequence[str], wanted: str, page: str) -> Paging:
    """Return the page of the names that contain ``wanted``; a ``page`` that does not exist is the nearest."""
    matching = [name for name in names if wanted.casefold() in name.casefold()]
    pages = max(1, -(-len(matching) // PAGE_SIZE))
    number = int(page) if page.isascii() and page.isdigit() and len(page) < 10 else 1
    number = min(max(number, 1), pages)
    start = (number - 1) * PAGE_SIZE
    return Paging(matching[start : start + PAGE_SIZE], wanted, number, pages, len(matching))
