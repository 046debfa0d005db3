"""Parses the text of a filter (RocketMQ 4.9.4 ``SelectorParser.jj``).

Kept, because expressions in use rely on it: NOT binds closer than any comparison (``NOT a = 1`` compares the
truth value ``NOT a`` with 1). A number is an Integer if it fits, else a Long; 0.0 is refused. BETWEEN
requires its bounds in order. IN takes only a property on its left and texts in its list. Where no further
token fits the grammar, the expression ends; the parser ignores the rest, but the first token of the rest must
be valid.
Changed: nesting and length are limited; in RocketMQ, only Java's stack limits them.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from rewindmq.broker.filter.errors import EvaluationError, FilterError
from rewindmq.broker.filter.expression import (
    And,
    Constant,
    Equal,
    Expression,
    In,
    Negate,
    Not,
    Or,
    Ordered,
    Property,
    TextTest,
    Truth,
)
from rewindmq.broker.filter.lexer import END, FLOAT, INTEGER, NAME, STRING, TEXT_TESTS, Lexer, Token
from rewindmq.broker.filter.values import compare, integer_constant

MAX_EXPRESSION_LENGTH: Final = 8_192
MAX_NESTING: Final = 50
_MAX_DIGITS: Final = 400

_NULL: Final = Constant(None)
_LITERALS: Final = {"TRUE": True, "FALSE": False, "NULL": None}
_ORDERS: Final = ("<", "<=", ">", ">=")


class Parsed(NamedTuple):
    """The result of parsing.

    Attributes:
        rest: the ignored text after the expression, usually empty.
    """

    expression: Expression
    rest: str


def parse(text: str, *, text_tests: bool) -> Parsed:
    """Parse an expression.

    Args:
        text_tests: CONTAINS, STARTSWITH and ENDSWITH are known.

    Raises:
        FilterError: if the text does not begin with an expression that has a truth value.
    """
    if len(text) > MAX_EXPRESSION_LENGTH:
        raise FilterError(f"the expression is longer than {MAX_EXPRESSION_LENGTH} characters")
    parser = _Parser(text, text_tests=text_tests)
    expression = parser.as_boolean(parser.any_of())
    return Parsed(expression, text[parser.peek().at :])


class _Parser:
    """Recursive-descent parser with one method for each rule of the grammar; each may raise FilterError."""

    def __init__(self, text: str, *, text_tests: bool) -> None:
        self._lexer = Lexer(text, text_tests=text_tests)
        self._ahead: list[Token] = []
        self._nesting = 0

    def any_of(self) -> Expression:
        first = self._all_of()
        if not self._take("OR"):
            return first
        operands = [self.as_boolean(first), self.as_boolean(self._all_of())]
        while self._take("OR"):
            operands.append(self.as_boolean(self._all_of()))
        return self._bounded(Or(*operands))

    def _all_of(self) -> Expression:
        first = self._equality()
        if not self._take("AND"):
            return first
        operands = [self.as_boolean(first), self.as_boolean(self._equality())]
        while self._take("AND"):
            operands.append(self.as_boolean(self._equality()))
        return self._bounded(And(*operands))

    def _equality(self) -> Expression:
        left = self._comparison()
        while True:
            if self._take("="):
                left = self._equal(left, self._comparison())
            elif self._take("<>"):
                left = Not(self._equal(left, self._comparison()))
            elif self._take("IS"):
                is_negated = self._take("NOT")
                self._expect("NULL")
                left = Not(Equal(left, _NULL)) if is_negated else Equal(left, _NULL)
            else:
                return left
            self._bounded(left)

    def _comparison(self) -> Expression:
        left = self._unary()
        while True:
            kind = self.peek().kind
            if kind in _ORDERS:
                self._next()
                left = self._ordered(kind, left, self._unary())
            elif kind == "NOT":
                self._next()
                left = self._negatable(left, is_negated=True)
            elif kind in ("BETWEEN", "IN") or kind in TEXT_TESTS:
                left = self._negatable(left, is_negated=False)
            else:
                return left
            self._bounded(left)

    def _negatable(self, left: Expression, *, is_negated: bool) -> Expression:
        token = self._next()
        if token.kind == "BETWEEN":
            return self._between(left, is_negated=is_negated)
        if token.kind == "IN":
            return self._in(left, is_negated=is_negated)
        if token.kind in TEXT_TESTS:
            return TextTest(token.kind, left, self._expect(STRING).text, is_negated=is_negated)
        raise self._unexpected(token, "BETWEEN or IN")

    def _between(self, value: Expression, *, is_negated: bool) -> Expression:
        low = self._unary()
        self._expect("AND")
        high = self._unary()
        if is_negated:
            return Or(self._ordered("<", value, low), self._ordered(">", value, high))
        if isinstance(low, Constant) and isinstance(high, Constant):
            _check_bounds(low, high)
        return And(self._ordered(">=", value, low), self._ordered("<=", value, high))

    def _in(self, of: Expression, *, is_negated: bool) -> Expression:
        self._expect("(")
        texts = [self._expect(STRING).text]
        while self._take(","):
            texts.append(self._expect(STRING).text)
        self._expect(")")
        if not isinstance(of, Property):
            raise FilterError(f"IN needs a property, not {of}")
        return In(of, tuple(texts), is_negated=is_negated)

    def _unary(self) -> Expression:
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            raise FilterError(f"the expression is nested deeper than {MAX_NESTING}")
        if self._take("+"):
            operand = self._unary()
        elif self._take("-"):
            operand = self._bounded(Negate(self._unary()))
        elif self._take("NOT"):
            operand = self._bounded(Not(self.as_boolean(self._unary())))
        else:
            operand = self._primary()
        self._nesting -= 1
        return operand

    def _primary(self) -> Expression:
        token = self._next()
        if token.kind == NAME:
            return Property(token.text)
        if token.kind == STRING:
            return Constant(token.text)
        if token.kind == INTEGER:
            return Constant(_integer(token))
        if token.kind == FLOAT:
            return Constant(_float(token))
        if token.kind in _LITERALS:
            return Constant(_LITERALS[token.kind])
        if token.kind == "(":
            inner = self.any_of()
            self._expect(")")
            return inner
        raise self._unexpected(token, "a property, a value or (")

    # Checks of an operator's operands.

    def as_boolean(self, value: Expression) -> Expression:
        if isinstance(value, Property):
            return Truth(value)
        if not value.is_boolean:
            raise FilterError(f"{value} has no truth value")
        return value

    def _equal(self, left: Expression, right: Expression) -> Expression:
        for side in (left, right):
            if isinstance(side, Constant) and side.value is None:
                raise FilterError("NULL cannot be compared; write IS NULL or IS NOT NULL")
        if (
            isinstance(left, Constant)
            and isinstance(right, Constant)
            and left.is_boolean
            and not right.is_boolean
        ):
            raise FilterError(f"{left} cannot be compared with {right}")
        return Equal(left, right)

    def _ordered(self, symbol: str, left: Expression, right: Expression) -> Expression:
        for side in (left, right):
            if side.is_boolean or (isinstance(side, Constant) and isinstance(side.value, str)):
                raise FilterError(f"{side} cannot be compared by {symbol}, only numbers can")
        return Ordered(symbol, left, right)

    def _bounded(self, node: Expression) -> Expression:
        if node.depth > MAX_NESTING:
            raise FilterError(f"the expression is nested deeper than {MAX_NESTING}")
        return node

    # Tokens.

    def peek(self) -> Token:
        if not self._ahead:
            self._ahead.append(self._lexer.next())
        return self._ahead[0]

    def _next(self) -> Token:
        token = self.peek()
        self._ahead.clear()
        return token

    def _take(self, kind: str) -> bool:
        if self.peek().kind != kind:
            return False
        self._ahead.clear()
        return True

    def _expect(self, kind: str) -> Token:
        token = self._next()
        if token.kind != kind:
            raise self._unexpected(token, kind)
        return token

    @staticmethod
    def _unexpected(token: Token, wanted: str) -> FilterError:
        found = "the end" if token.kind == END else repr(token.text)
        return FilterError(f"character {token.at + 1}: found {found} where {wanted} is expected")


def _integer(token: Token) -> int:
    digits = token.text.rstrip("lL")
    try:
        return integer_constant(digits[:_MAX_DIGITS])
    except OverflowError:
        raise FilterError(f"character {token.at + 1}: {digits[:24]} is beyond Java's integers") from None


def _float(token: Token) -> float:
    value = float(token.text)
    # Java refuses a value below Double.MIN_VALUE, and so refuses 0.0, too.
    if value == 0 or math.isinf(value):
        raise FilterError(f"character {token.at + 1}: {token.text[:24]} is out of a double's range")
    return value


def _check_bounds(low: Constant, high: Constant) -> None:
    if low.value is None or high.value is None:
        raise FilterError("Illegal values of between, values can not be null!")
    try:
        is_in_order = compare(high.value, low.value) >= 0
    except EvaluationError:
        is_in_order = False
    if not is_in_order:
        raise FilterError(
            f"Illegal values of between, left value({low}) must less than or equal to right value({high})"
        )
