"""The nodes of a filter expression and their evaluation.

RocketMQ 4.9.4 ``org.apache.rocketmq.filter.expression``.

The logic has three values: ``None`` is unknown, and a message passes only with True. ``str`` returns an
expression as text that parses to the same expression.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from rewindmq.broker.filter.errors import EvaluationError
from rewindmq.broker.filter.values import Value, compare, compare_as_doubles, negate

Properties = Mapping[str, str]


class Expression:
    """Base of all nodes.

    Attributes:
        operands: the child nodes.
        depth: nesting depth, 1 without children.
        size: number of nodes, this one included.
        is_boolean: True if the node has a truth value, known or unknown.
    """

    __slots__ = ("depth", "operands", "size")
    is_boolean = True

    def __init__(self, *operands: Expression) -> None:
        self.operands = operands
        self.depth: int = 1 + max((operand.depth for operand in operands), default=0)
        self.size: int = 1 + sum(operand.size for operand in operands)

    def evaluate(self, properties: Properties) -> Value:
        """Return the value for a message; raise EvaluationError where Java throws."""
        raise NotImplementedError


class Constant(Expression):
    """A literal text, number or truth value, or NULL."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        super().__init__()
        self.value = value

    @property
    def is_boolean(self) -> bool:  # type: ignore[override]
        return self.value is None or isinstance(self.value, bool)

    def evaluate(self, properties: Properties) -> Value:
        return self.value

    def __str__(self) -> str:
        value = self.value
        if isinstance(value, str):
            return quoted(value)
        if value is None:
            return "NULL"
        return str(value).upper()


class Property(Expression):
    """A property of the message, a text; unknown if the message does not have it."""

    __slots__ = ("name",)
    is_boolean = False

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def evaluate(self, properties: Properties) -> Value:
        return properties.get(self.name)

    def __str__(self) -> str:
        return self.name


class Truth(Expression):
    """A property used as a truth value: False, because properties are texts; unknown if it is missing."""

    __slots__ = ()

    def evaluate(self, properties: Properties) -> Value:
        return None if self.operands[0].evaluate(properties) is None else False

    def __str__(self) -> str:
        return str(self.operands[0])


class Negate(Expression):
    """The negative of a number; unknown for anything else, including a property."""

    __slots__ = ()
    is_boolean = False

    def evaluate(self, properties: Properties) -> Value:
        return negate(self.operands[0].evaluate(properties))

    def __str__(self) -> str:
        return f"(- {self.operands[0]})"


class Not(Expression):
    """``NOT x``: unknown if x is."""

    __slots__ = ()

    def evaluate(self, properties: Properties) -> Value:
        value = self.operands[0].evaluate(properties)
        return None if value is None else not value

    def __str__(self) -> str:
        return f"(NOT {self.operands[0]})"


class And(Expression):
    """False if any operand is False, else unknown if any is unknown, else True."""

    __slots__ = ()

    def evaluate(self, properties: Properties) -> Value:
        result: Value = True
        for operand in self.operands:
            value = operand.evaluate(properties)
            if value is None:
                result = None
            elif not value:
                return False
        return result

    def __str__(self) -> str:
        return f"({' AND '.join(map(str, self.operands))})"


class Or(Expression):
    """True if any operand is True, else unknown if any is unknown, else False."""

    __slots__ = ()

    def evaluate(self, properties: Properties) -> Value:
        result: Value = False
        for operand in self.operands:
            value = operand.evaluate(properties)
            if value:
                return True
            if value is None:
                result = None
        return result

    def __str__(self) -> str:
        return f"({' OR '.join(map(str, self.operands))})"


class Equal(Expression):
    """``=``; IS NULL is an ``=`` with the constant NULL on the right.

    The result is unknown if only the left side is unknown, False if only the right side is, True if both are.
    """

    __slots__ = ()

    def evaluate(self, properties: Properties) -> Value:
        left, right = (operand.evaluate(properties) for operand in self.operands)
        if left is None:
            return True if right is None else None
        return right is not None and compare(left, right) == 0

    def __str__(self) -> str:
        left, right = self.operands
        if isinstance(right, Constant) and right.value is None:
            return f"({left} IS NULL)"
        return f"({left} = {right})"


_ORDERS: Final[Mapping[str, Callable[[int], bool]]] = MappingProxyType(
    {
        "<": lambda order: order < 0,
        "<=": lambda order: order <= 0,
        ">": lambda order: order > 0,
        ">=": lambda order: order >= 0,
    }
)


class Ordered(Expression):
    """``<``, ``<=``, ``>`` and ``>=``, which compare numbers only: two texts are compared as doubles."""

    __slots__ = ("_decide", "symbol")

    def __init__(self, symbol: str, left: Expression, right: Expression) -> None:
        super().__init__(left, right)
        self.symbol = symbol
        self._decide = _ORDERS[symbol]

    def evaluate(self, properties: Properties) -> Value:
        left = self.operands[0].evaluate(properties)
        if left is None:
            return None
        right = self.operands[1].evaluate(properties)
        if right is None:
            return None
        if isinstance(left, str) and isinstance(right, str):
            return self._decide(compare_as_doubles(left, right))
        return self._decide(compare(left, right))

    def __str__(self) -> str:
        return f"({self.operands[0]} {self.symbol} {self.operands[1]})"


class In(Expression):
    """IN and NOT IN: whether a property equals one of the texts; unknown if the property is missing."""

    __slots__ = ("is_negated", "texts")

    def __init__(self, of: Property, texts: tuple[str, ...], *, is_negated: bool) -> None:
        super().__init__(of)
        self.texts = texts
        self.is_negated = is_negated

    def evaluate(self, properties: Properties) -> Value:
        value = self.operands[0].evaluate(properties)
        return None if value is None else (value in self.texts) is not self.is_negated

    def __str__(self) -> str:
        return f"({self.operands[0]} {_negation(self.is_negated)}IN ({', '.join(map(quoted, self.texts))}))"


_TEXT_TESTS: Final[Mapping[str, Callable[[str, str], bool]]] = MappingProxyType(
    {
        "CONTAINS": lambda text, part: part in text,
        "STARTSWITH": str.startswith,
        "ENDSWITH": str.endswith,
    }
)


class TextTest(Expression):
    """CONTAINS, STARTSWITH and ENDSWITH (5.3.3).

    If the value is not a text, or the part is empty, the test is False, and so is its negation.
    """

    __slots__ = ("_holds", "is_negated", "part", "word")

    def __init__(self, word: str, of: Expression, part: str, *, is_negated: bool) -> None:
        super().__init__(of)
        self.word = word
        self.part = part
        self.is_negated = is_negated
        self._holds = _TEXT_TESTS[word]

    def evaluate(self, properties: Properties) -> Value:
        value = self.operands[0].evaluate(properties)
        if not self.part or not isinstance(value, str):
            return False
        return self._holds(value, self.part) is not self.is_negated

    def __str__(self) -> str:
        return f"({self.operands[0]} {_negation(self.is_negated)}{self.word} {quoted(self.part)})"


def _negation(is_negated: bool) -> str:
    return "NOT " if is_negated else ""


def quoted(text: str) -> str:
    """Return a text as a literal of an expression."""
    return "'" + text.replace("'", "''") + "'"


def matches(expression: Expression, properties: Properties) -> bool:
    """Return True if a message passes; it does not if a comparison fails."""
    try:
        return expression.evaluate(properties) is True
    except EvaluationError:
        return False
