"""What a filter expression is made of, and what it says of a message.

RocketMQ 4.9.4 ``org.apache.rocketmq.filter.expression``.

The logic has three values: ``None`` is unknown, and only True lets a message pass. ``str`` writes an
expression so that it can be read again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from rewindmq.broker.filter.errors import EvaluationError
from rewindmq.broker.filter.values import Value, compare, compare_as_doubles, negate

Properties = Mapping[str, str]


class Expression:
    """Base of all parts.

    Attributes:
        operands: the parts it is made of.
        depth: how deep those are nested, 1 without any.
        size: how many parts it is made of, itself included.
        is_boolean: it has a truth value, known or not.
    """

    __slots__ = ("depth", "operands", "size")
    is_boolean = True

    def __init__(self, *operands: Expression) -> None:
        self.operands = operands
        self.depth: int = 1 + max((operand.depth for operand in operands), default=0)
        self.size: int = 1 + sum(operand.size for operand in operands)

    def evaluate(self, properties: Properties) -> Value:
        """Its value for a message. EvaluationError where Java would throw."""
        raise NotImplementedError


class Constant(Expression):
    """A text, number or truth value written down, or NULL."""

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
    """A property of the message by its name, a text; unknown when it has none."""

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
    """A property where a truth value is wanted: no text is one, so it is false, or unknown without it."""

    __slots__ = ()

    def evaluate(self, properties: Properties) -> Value:
        return None if self.operands[0].evaluate(properties) is None else False

    def __str__(self) -> str:
        return str(self.operands[0])


class Negate(Expression):
    """The opposite of a number; unknown for anything else, so also for a property."""

    __slots__ = ()
    is_boolean = False

    def evaluate(self, properties: Properties) -> Value:
        return negate(self.operands[0].evaluate(properties))

    def __str__(self) -> str:
        return f"(- {self.operands[0]})"


class Not(Expression):
    __slots__ = ()

    def evaluate(self, properties: Properties) -> Value:
        value = self.operands[0].evaluate(properties)
        return None if value is None else not value

    def __str__(self) -> str:
        return f"(NOT {self.operands[0]})"


class And(Expression):
    """False as soon as one operand is, then unknown if one is."""

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
    """True as soon as one operand is, then unknown if one is."""

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
    """``=``, and IS NULL with the constant NULL on the right.

    An unknown left side makes it unknown, an unknown right side false; both, true.
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
    """``<``, ``<=``, ``>`` and ``>=``, of numbers only: two texts have to be numbers."""

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
    """Whether a property is one of some texts, or none of them; unknown without the property."""

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
    """CONTAINS, STARTSWITH, ENDSWITH (5.3.3); false, also when negated, for no text or the empty part."""

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
    """A text as it is written in an expression."""
    return "'" + text.replace("'", "''") + "'"


def matches(expression: Expression, properties: Properties) -> bool:
    """Whether a message passes; what cannot be compared does not."""
    try:
        return expression.evaluate(properties) is True
    except EvaluationError:
        return False
