"""Filter expressions as plain tuples: generation, text form, and evaluation for a message.

Independent of the broker's evaluator: one function over tuples, with exact numbers.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

NAMES = ("a", "b", "Price", "_x$", "region")
TEXTS = ("", "eu", "us", "5", "-7", "3000000000", "2.5", "1e2", "true", "it's", " 4 ", "NaN", "x")
Tree = tuple[Any, ...]


class UnfitError(Exception):
    """Java would throw here."""


names = st.sampled_from(NAMES).map(lambda name: ("name", name))
texts = st.sampled_from(TEXTS).map(lambda text: ("text", text))
integers = st.sampled_from((0, 1, 5, 100, 2**31 - 1, 2**31, 2**63 - 1)).map(lambda n: ("int", n))
doubles = st.sampled_from(("2.5", "1e2", ".5", "5.", "7.25E-1")).map(lambda n: ("double", n))
numbers = integers | doubles | (integers | doubles).map(lambda n: ("minus", n))
comparable = names | numbers


def _comparisons() -> st.SearchStrategy[Tree]:
    parts = st.sampled_from(("eu", "5", "", "e"))
    lists = st.lists(st.sampled_from(TEXTS), min_size=1, max_size=3).map(tuple)
    flags = st.booleans()
    return st.one_of(
        st.tuples(st.sampled_from(("=", "<>")), names, names | texts | numbers),
        st.tuples(st.sampled_from(("=", "<>")), numbers | texts, names),
        st.tuples(st.sampled_from(("=", "<>")), names, st.sampled_from((("true",), ("false",)))),
        st.tuples(st.sampled_from(("<", "<=", ">", ">=")), comparable, comparable),
        st.tuples(st.just("null"), names | numbers | texts, flags),
        st.tuples(st.just("in"), names, lists, flags),
        st.tuples(st.just("outside"), names, numbers, numbers),
        st.tuples(st.just("between"), names, names, numbers),
        st.tuples(st.sampled_from(("CONTAINS", "STARTSWITH", "ENDSWITH")), names, parts, flags),
        st.just(("true",)),
        st.just(("false",)),
        names.map(lambda name: ("truth", name)),
    )


trees: st.SearchStrategy[Tree] = st.recursive(
    _comparisons(),
    lambda inner: st.one_of(
        st.tuples(st.just("and"), inner, inner),
        st.tuples(st.just("or"), inner, inner),
        st.tuples(st.just("not"), inner),
    ),
    max_leaves=8,
)
properties = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(TEXTS[1:]))


def write(tree: Tree) -> str:
    """The expression as text."""
    kind, *parts = tree
    match kind:
        case "name" | "double":
            return str(parts[0])
        case "int":
            return f"{parts[0]}L" if parts[0] else "0"
        case "text":
            return _quote(parts[0])
        case "true" | "false":
            return str(kind)
        case "minus":
            return f"-{write(parts[0])}"
        case "truth":
            return write(parts[0])
        case "and" | "or":
            return f"({write(parts[0])}) {kind} ({write(parts[1])})"
        case "not":
            return f"NoT ({write(parts[0])})"
        case "null":
            return f"{write(parts[0])} is{' not' if parts[1] else ''} null"
        case "in":
            listed = ",".join(map(_quote, parts[1]))
            return f"{write(parts[0])}{' not' if parts[2] else ''} in({listed})"
        case "between":
            return f"{write(parts[0])} between {write(parts[1])} and {write(parts[2])}"
        case "outside":
            return f"{write(parts[0])} not between {write(parts[1])} and {write(parts[2])}"
        case "CONTAINS" | "STARTSWITH" | "ENDSWITH":
            return f"{write(parts[0])}{' NOT' if parts[2] else ''} {kind} {_quote(parts[1])}"
    return f"{write(parts[0])} {kind}/* */{write(parts[1])}"


def _quote(text: str) -> str:
    return "'" + "''".join(text.split("'")) + "'"


def passes(tree: Tree, message: dict[str, str]) -> bool:
    """Whether a message passes the filter."""
    try:
        return truth(tree, message) is True
    except UnfitError:
        return False


def truth(tree: Tree, message: dict[str, str]) -> bool | None:
    kind, *parts = tree
    match kind:
        case "true" | "false":
            return bool(kind == "true")
        case "truth":
            return False if parts[0][1] in message else None
        case "not":
            return _invert(truth(parts[0], message))
        case "and":
            return _both(parts[0], parts[1], message, stop=False)
        case "or":
            return _both(parts[0], parts[1], message, stop=True)
        case "null":
            return (_value(parts[0], message) is None) is not parts[1]
        case "in":
            value = message.get(parts[0][1])
            return None if value is None else (value in parts[1]) != parts[2]
        case "between":
            return _both((">=", parts[0], parts[1]), ("<=", parts[0], parts[2]), message, stop=False)
        case "outside":
            return _both(("<", parts[0], parts[1]), (">", parts[0], parts[2]), message, stop=True)
        case "CONTAINS" | "STARTSWITH" | "ENDSWITH":
            value = message.get(parts[0][1])
            if value is None or not parts[1]:
                return False
            places = {
                "CONTAINS": value.find(parts[1]) >= 0,
                "STARTSWITH": value[: len(parts[1])] == parts[1],
                "ENDSWITH": value[-len(parts[1]) :] == parts[1],
            }
            return bool(places[kind] != parts[2])
        case "<>":
            return _invert(_equal(parts[0], parts[1], message))
        case "=":
            return _equal(parts[0], parts[1], message)
    return _ordered(kind, parts[0], parts[1], message)


def _invert(value: bool | None) -> bool | None:
    return None if value is None else not value


def _both(left: Tree, right: Tree, message: dict[str, str], *, stop: bool) -> bool | None:
    first = truth(left, message)
    if first is stop:
        return stop
    second = truth(right, message)
    if second is stop:
        return stop
    return None if first is None or second is None else not stop


def _value(tree: Tree, message: dict[str, str]) -> Any:
    """A text, a truth value, or a number as (type, exact value)."""
    kind, *parts = tree
    if kind == "name":
        return message.get(parts[0])
    if kind == "text":
        return parts[0]
    if kind in ("true", "false"):
        return kind == "true"
    if kind == "int":
        return ("i" if parts[0] < 2**31 else "l", Decimal(parts[0]))
    if kind == "double":
        return ("d", Decimal(parts[0]))
    inner_kind, number = _value(parts[0], message)
    return (inner_kind, -number)


def _equal(left: Tree, right: Tree, message: dict[str, str]) -> bool | None:
    a, b = _value(left, message), _value(right, message)
    if a is None:
        return True if b is None else None
    return b is not None and _difference(a, b) == 0


def _ordered(symbol: str, left: Tree, right: Tree, message: dict[str, str]) -> bool | None:
    a, b = _value(left, message), _value(right, message)
    if a is None or b is None:
        return None
    if isinstance(a, str) and isinstance(b, str):
        a, b = ("d", _read(a, "d")), ("d", _read(b, "d"))
    order = _difference(a, b)
    return {"<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[symbol]


def _difference(a: Any, b: Any) -> int:
    if isinstance(a, str) and isinstance(b, bool):
        a = a.lower() == "true"
    if isinstance(a, str) and isinstance(b, tuple):
        a = (b[0], _read(a, b[0]))
    if isinstance(b, str) and isinstance(a, tuple):
        b = (a[0], _read(b, a[0]))
    if isinstance(a, tuple):
        a, b = _float_like(a[1], b[1], "d" in (a[0], b[0]))
    return int(a > b) - int(a < b)


def _float_like(a: Decimal, b: Decimal, are_doubles: bool) -> tuple[Any, Any]:
    if not are_doubles:
        return a, b
    # NaN is above everything, and equal to itself.
    return (a.is_nan(), 0 if a.is_nan() else float(a)), (b.is_nan(), 0 if b.is_nan() else float(b))


def _read(text: str, kind: str) -> Decimal:
    if kind == "d":
        try:
            return Decimal(text.strip())
        except ArithmeticError:
            raise UnfitError(text) from None
    if not re.fullmatch("[+-]?[0-9]+", text):
        raise UnfitError(text)
    number = Decimal(text)
    bits = 31 if kind == "i" else 63
    if not -(2**bits) <= number < 2**bits:
        raise UnfitError(text)
    return number
