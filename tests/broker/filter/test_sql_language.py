"""SQL92 filters: meaning, refused expressions, and properties of the parser and the evaluator."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rewindmq.broker.filter.errors import EvaluationError, FilterError
from rewindmq.broker.filter.expression import matches
from rewindmq.broker.filter.parser import MAX_EXPRESSION_LENGTH, parse
from rewindmq.broker.filter.values import compare, java_double
from tests.broker.filter import sql_reference as reference

MESSAGE = {"a": "5", "b": "eu", "c": "2.5", "t": "true", "big": "3000000000", "q": "it's", "n": "-1"}

PASSES = [
    "a = 5",
    "a = '5'",
    "a > 4 AND a < 6",
    "a BETWEEN 5 AND 5",
    "a NOT BETWEEN 6 AND 9",
    "b IN ('us', 'eu')",
    "b not in ('us')",
    "x IS NULL AND a IS NOT NULL",
    "NOT (a = 6)",
    "c = 2.5 AND c < 1e2 AND c > .5 AND c >= 2.",
    "t = TRUE",
    "big = 3000000000",
    "n = -1 AND n < +1",
    "q = 'it''s'",
    "a = 5 -- the price\n AND /* and * the ** region */ b = 'eu'",
    "a > c",
    # RocketMQ reads only one token after the expression.
    "a = 5 b = 6",
    "a = 5 'x'",
    # A missing property is unknown on the left of =, and false on the right.
    "NOT (5 = x)",
    "TRUE",
]
FAILS = [
    "a = 6",
    "x = 5",
    "NOT (x = 5)",
    "x <> 5",
    "x NOT IN ('eu')",
    "a = 5 AND NULL",
    # No text is a truth value.
    "t",
    # NOT binds closer than =: a truth value is compared with a number.
    "NOT a = 6",
    # A property that is no number of the constant's type matches no condition.
    "b > 1",
    "NOT (b > 1)",
    "c > 2",
    "big > 5",
    "-a = -5",
    "b > q",
]
REFUSED = [
    "",
    "a =",
    "= 5",
    "a > 'x'",
    "a > TRUE",
    "a BETWEEN 5 AND 1",
    "a BETWEEN NULL AND 1",
    "a BETWEEN 'x' AND 1",
    "a IN (1, 2)",
    "a IN ()",
    "5 IN ('5')",
    "(a = 1) > 2",
    "a = NULL",
    "a <> NULL",
    "TRUE = 5",
    "5",
    "'x' AND a = 1",
    "-a",
    "a IS 5",
    "a NOT 5",
    "(a = 5",
    "a = 'x",
    "a = 0.0",
    "a = 1e999",
    "a = 9223372036854775808",
    "a = 5 & b = 6",
    "a % 5",
]


@pytest.mark.parametrize("text", PASSES)
def test_a_message_passes(text: str) -> None:
    assert matches(parse(text, text_tests=False).expression, MESSAGE)


@pytest.mark.parametrize("text", FAILS)
def test_a_message_does_not_pass(text: str) -> None:
    assert not matches(parse(text, text_tests=False).expression, MESSAGE)


@pytest.mark.parametrize("text", REFUSED)
def test_an_invalid_filter_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(FilterError) as caught:
        parse(text, text_tests=False)
    assert str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("b CONTAINS 'u'", True),
        ("b STARTSWITH 'e' AND b ENDSWITH 'u'", True),
        ("b NOT CONTAINS 'x'", True),
        ("b NOT STARTSWITH 'e'", False),
        ("b NOT ENDSWITH 'u'", False),
        # The empty part and a missing property: false either way.
        ("b CONTAINS '' OR b NOT CONTAINS '' OR x NOT CONTAINS 'e' OR x CONTAINS 'e'", False),
    ],
)
def test_tests_of_texts_are_words_of_5_x_only(text: str, passes: bool) -> None:
    assert matches(parse(text, text_tests=True).expression, MESSAGE) is passes
    # Before, the word is a name behind the end of the expression, or cannot follow NOT.
    if text.startswith("b NOT"):
        with pytest.raises(FilterError):
            parse(text, text_tests=False)
    else:
        assert parse(text, text_tests=False).rest
        assert not matches(parse(text, text_tests=False).expression, MESSAGE)


@pytest.mark.parametrize(
    "text", ["(" * 500 + "a", "NOT " * 500 + "a", "a" + " = a" * 500, "-" * 500 + "a = 1"]
)
def test_nesting_is_bounded(text: str) -> None:
    with pytest.raises(FilterError, match="nested deeper than 50"):
        parse(text, text_tests=True)


def test_length_is_bounded_and_long_lists_of_conditions_are_fine() -> None:
    text = " OR ".join(["a = 1"] * 900)
    assert not matches(parse(text, text_tests=True).expression, MESSAGE)
    with pytest.raises(FilterError, match="longer than"):
        parse("a = 1 " + " " * MAX_EXPRESSION_LENGTH, text_tests=True)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (" 1.5f ", 1.5),
        ("0x1p3", 8.0),
        ("-Infinity", float("-inf")),
        ("1e999", float("inf")),
        ("0x1p9999", float("inf")),
    ],
)
def test_doubles_are_read_as_java_reads_them(text: str, value: float) -> None:
    assert java_double(text) == value


@pytest.mark.parametrize("text", ["", "1_0", "inf", "nan", "1e", "0x1", "ten", "--1"])
def test_what_java_takes_for_no_double(text: str) -> None:
    with pytest.raises(EvaluationError):
        java_double(text)


@pytest.mark.parametrize(
    "text", ["1" * 32_000 + "x", "1" * 16_000 + "." + "1" * 16_000 + "x", "1e" + "1" * 32_000 + "x"]
)
def test_a_long_text_that_is_almost_a_number_takes_no_time(text: str) -> None:
    """The broker reads it for every pull; tried digit by digit it would stand still for a minute."""
    assert not matches(parse("a > 1.5", text_tests=False)[0], {"a": text})


def test_nan_and_zeros_are_ordered_as_java_orders_them() -> None:
    nan = float("nan")
    assert compare(nan, nan) == 0
    assert compare(nan, float("inf")) > 0
    assert compare(-0.0, 0.0) < 0


@given(
    st.text(max_size=60)
    | st.lists(
        st.sampled_from(
            [
                "a",
                "5",
                "'x'",
                "=",
                "<>",
                "<",
                "(",
                ")",
                ",",
                "-",
                "+",
                "not",
                "and",
                "or",
                "in",
                "between",
                "is",
                "null",
                "true",
                "1.5",
                "contains",
                "--",
                "/*",
                "*/",
                "'",
                "\n",
                "0",
                "9" * 30,
            ]
        ),
        max_size=14,
    ).map(" ".join)
)
@example("a\x00")
@example("'" * 21)
@example("a = " + "9" * 10_000)
@example("/*" + "*" * 5_000)
def test_the_parser_raises_nothing_but_its_own_error_and_what_it_takes_can_be_asked(text: str) -> None:
    for text_tests in (False, True):
        try:
            expression, rest = parse(text, text_tests=text_tests)
        except FilterError:
            continue
        assert text.endswith(rest)
        assert matches(expression, MESSAGE) in (True, False)
        assert str(parse(str(expression), text_tests=text_tests).expression) == str(expression)


@given(reference.trees, reference.properties)
def test_an_expression_agrees_with_a_plain_evaluation(tree: reference.Tree, message: dict[str, str]) -> None:
    expression, rest = parse(reference.write(tree), text_tests=True)
    assert not rest
    wanted = reference.passes(tree, message)
    assert matches(expression, message) is wanted
    # Written down and read again it is the same.
    again = parse(str(expression), text_tests=True)
    assert (str(again.expression), again.rest) == (str(expression), "")
    assert matches(again.expression, message) is wanted


def test_two_minus_signs_begin_a_comment_only_before_a_line_break() -> None:
    at_the_end = parse("a < 1 -- b\n OR --a < --2", text_tests=False)
    assert str(at_the_end.expression) == str(parse("a < 1 OR - -a < - -2", text_tests=False).expression)
