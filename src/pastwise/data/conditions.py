r"""Conditions: which rows of a log a goal means, in a small language.

The grammar, loosest first; keywords are read in any case:

    condition   = conjunction {"or" conjunction}
    conjunction = negation {"and" negation}
    negation    = "not" negation | "(" condition ")" | comparison
    comparison  = column ("<" | "<=" | ">" | ">=" | "==" | "!=") value
                | value operator column [operator value]
                | column ["not"] "in" "(" value {"," value} ")"
                | column "is" ["not"] "missing"

A column is a word, or any name in backquotes. A value is a number, ``true`` or ``false``, a word,
or any text in quotes. A quote within quotes is written twice.

A condition can be decided for a row, and often for a whole region of rows. With

    condition.decide(region) = True   if it holds for every row of the region,
                               False  if it holds for none of them,
                               None   if that cannot be said,

negation, conjunction and disjunction follow the three-valued logic of Kleene. A comparison with a
missing value is false for every operator; ``not`` is plain negation.

A number is compared with numbers, and with text that spells a number or a date, which is compared
in seconds since 1970. Text is compared with text, in alphabetical order. Other pairs are unequal,
and none of them comes before the other.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf, isfinite, nextafter
from typing import NamedTuple

from pastwise.data.regions import (
    Anything,
    Categories,
    Interval,
    Missing,
    Point,
    Region,
    Values,
    is_missing,
    number_of,
    number_or_date,
    plain,
)
from pastwise.data.space import Label, key_of
from pastwise.errors import ConditionError, ParameterError, listed, shown

Literal = bool | float | str
"""A value that a column is compared with."""

ORDER: dict[str, Callable[[float, float], bool]] = {
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
}
"""Comparisons that need an order."""

MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
"""The comparison with its sides exchanged."""

MEMBERSHIP = ("in", "not in")
IS_MISSING = "is missing"
OPERATORS = (*MIRRORED, *MEMBERSHIP, IS_MISSING)

KEYWORDS = ("and", "or", "not", "in", "is", "missing", "true", "false")

SIGNS = re.compile(r"[<>=!]|\b(?:in|is)\b", re.IGNORECASE)
"""What every condition has one of."""

ANY_NUMBER = Interval()
"""All numbers, which may be dates."""

MOST_NESTED = 100
"""How deep parentheses and negations may be nested: far beyond what anybody reads."""


class Condition(ABC):
    """A statement about the columns of a row; `parse_condition` reads one."""

    @abstractmethod
    def holds(self, row: Mapping[str, object]) -> bool:
        """Whether it is true of a row; a column that the row does not have is missing."""

    @abstractmethod
    def decide(self, region: Region) -> bool | None:
        """Whether it is true of every row of a region, or of none; None if neither is certain."""

    @abstractmethod
    def undecided(self, region: Region) -> tuple[Comparison, ...]:
        """The comparisons on which it depends within a region, in order of appearance.

        There is none if the region decides the condition.
        """

    @abstractmethod
    def atoms(self) -> tuple[Comparison, ...]:
        """Its comparisons, in order of appearance."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is about, in order of appearance."""
        return tuple(dict.fromkeys(atom.column for atom in self.atoms()))


@dataclass(frozen=True)
class Comparison(Condition):
    """A column compared with a value, with several of them, or with nothing.

    Attributes
    ----------
    column : str
    operator : str
        One of ``OPERATORS``.
    value : number, boolean or text; a tuple of them for ``in`` and ``not in``; otherwise None

    Examples
    --------
    >>> Comparison("wage", ">=", 2.0).holds({"wage": 2.5})
    True
    """

    column: str
    operator: str
    value: Literal | tuple[Literal, ...] | None = None

    def __post_init__(self) -> None:
        if self.operator not in OPERATORS:
            raise ParameterError(
                f"{self.operator!r} is no comparison; there are {', '.join(OPERATORS)}"
            )
        is_tuple = isinstance(self.value, tuple)
        if is_tuple != (self.operator in MEMBERSHIP) or self.value == ():
            raise ParameterError(f"{self.operator!r} cannot compare with {self.value!r}")
        if (self.value is None) != (self.operator == IS_MISSING):
            raise ParameterError(f"{self.operator!r} cannot compare with {self.value!r}")
        if self.operator in ORDER and isinstance(self.value, bool):
            raise ParameterError(f"{self.operator!r} needs a number or text, not {self.value}")
        for literal in self.literals:
            if isinstance(literal, (int, float)) and not isfinite(literal):
                raise ParameterError(f"{self.column}: {literal} is not a finite number")

    @property
    def literals(self) -> tuple[Literal, ...]:
        """The values that the column is compared with."""
        if self.value is None:
            return ()
        return self.value if isinstance(self.value, tuple) else (self.value,)

    def cuts(self, numbers: Interval = ANY_NUMBER) -> tuple[float, ...]:
        """Thresholds t, ascending, such that the tests ``column < t`` decide it for any number.

        Parameters
        ----------
        numbers : Interval
            Says whether the numbers of the column are dates.

        Examples
        --------
        >>> Comparison("wage", ">=", 2.0).cuts(), Comparison("wage", "<=", 2.0).cuts()
        ((2.0,), (2.0000000000000004,))
        """
        cuts: set[float] = set()
        for literal in self.literals:
            number = numbers.number_of(literal)
            if number is None:
                continue
            if self.operator not in ("<=", ">"):
                cuts.add(number)
            if self.operator not in ("<", ">="):
                cuts.add(nextafter(number, inf))
        return tuple(sorted(cuts))

    @property
    def positive(self) -> Comparison:
        """The comparison without its negation: ``==`` for ``!=``, ``in`` for ``not in``."""
        if self.operator == "!=":
            return Comparison(self.column, "==", self.value)
        if self.operator == "not in":
            return Comparison(self.column, "in", self.value)
        return self

    def holds(self, row: Mapping[str, object]) -> bool:
        """Whether it is true of a row."""
        value = row.get(self.column)
        if is_missing(value):
            return self.operator == IS_MISSING
        return self._holds_for(plain(value))

    def _holds_for(self, value: Label) -> bool:
        """Whether it is true of a value that is not missing."""
        if self.operator == IS_MISSING:
            return False
        if self.operator in ORDER:
            return _is_ordered(value, self.operator, self.literals[0])
        is_member = any(_is_equal(value, literal) for literal in self.literals)
        return is_member == (self.operator in ("==", "in"))

    def decide(self, region: Region) -> bool | None:
        """Whether it is true of a region: of all rows, of none, or None."""
        values = region.get(self.column, Anything())
        if isinstance(values, Anything):
            return None
        if isinstance(values, Missing):
            return self.operator == IS_MISSING

        # What the values that are there say; then those that are missing.
        answer = False if self.operator == IS_MISSING else self._decide_for(values)
        or_missing = not isinstance(values, Point) and values.or_missing
        if or_missing and answer is not (self.operator == IS_MISSING):
            return None
        return answer

    def _decide_for(self, values: Values) -> bool | None:
        """`decide` for values that are not missing."""
        if isinstance(values, Point):
            return self._holds_for(values.value)
        if isinstance(values, Interval):
            return self._decide_for_interval(values)
        assert isinstance(values, Categories)
        if not values.is_complement:
            return _common(self._holds_for(value) for value in values.values)
        return self._decide_for_complement(values)

    def _decide_for_interval(self, interval: Interval) -> bool | None:
        numbers = [interval.number_of(literal) for literal in self.literals]
        ends = (interval.lowest, interval.highest)
        if self.operator in ORDER:
            (threshold,) = numbers
            if threshold is None:
                return False
            return _common(ORDER[self.operator](end, threshold) for end in ends)

        # Equality: certain for a single number, and for a value outside.
        is_negated = self.operator in ("!=", "not in")
        if ends[0] == ends[1]:
            return (ends[0] in numbers) != is_negated
        may_equal = any(each is not None and ends[0] <= each <= ends[1] for each in numbers)
        return None if may_equal else is_negated

    def _decide_for_complement(self, values: Categories) -> bool | None:
        """Certain only where each value to compare with is among those that are excluded."""
        if self.operator in ORDER:
            return None
        for literal in self.literals:
            # A number may be written in other ways, such as 5 and 5.0.
            is_number = not isinstance(literal, (str, bool))
            if is_number or not any(_is_equal(value, literal) for value in values.values):
                return None
        return self.operator in ("!=", "not in")

    def undecided(self, region: Region) -> tuple[Comparison, ...]:
        """The comparisons on which it depends within a region."""
        return (self,) if self.decide(region) is None else ()

    def atoms(self) -> tuple[Comparison, ...]:
        """Its comparisons."""
        return (self,)

    def __str__(self) -> str:
        column = column_text(self.column)
        if self.operator == IS_MISSING:
            return f"{column} {IS_MISSING}"
        if self.operator in MEMBERSHIP:
            members = ", ".join(literal_text(literal) for literal in self.literals)
            return f"{column} {self.operator} ({members})"
        return f"{column} {self.operator} {literal_text(self.literals[0])}"


@dataclass(frozen=True)
class Not(Condition):
    """The negation of a condition."""

    operand: Condition

    def holds(self, row: Mapping[str, object]) -> bool:
        """Whether it is true of a row."""
        return not self.operand.holds(row)

    def decide(self, region: Region) -> bool | None:
        """Whether it is true of a region: of all rows, of none, or None."""
        answer = self.operand.decide(region)
        return None if answer is None else not answer

    def undecided(self, region: Region) -> tuple[Comparison, ...]:
        """The comparisons on which it depends within a region."""
        return self.operand.undecided(region)

    def atoms(self) -> tuple[Comparison, ...]:
        """Its comparisons."""
        return self.operand.atoms()

    def __str__(self) -> str:
        if isinstance(self.operand, Comparison) and self.operand.operator == IS_MISSING:
            return f"{column_text(self.operand.column)} is not missing"
        return f"not {_in_parentheses(self.operand, (And, Or))}"


@dataclass(frozen=True)
class _Several(Condition):
    """Conditions joined by the same word."""

    operands: tuple[Condition, ...]

    def __post_init__(self) -> None:
        if len(self.operands) < 2:
            raise ParameterError("'and' and 'or' join at least two conditions")

    def undecided(self, region: Region) -> tuple[Comparison, ...]:
        """The comparisons on which it depends within a region."""
        if self.decide(region) is not None:
            return ()
        return _joined(operand.undecided(region) for operand in self.operands)

    def atoms(self) -> tuple[Comparison, ...]:
        """Its comparisons."""
        return _joined(operand.atoms() for operand in self.operands)


class And(_Several):
    """Conditions that must all hold."""

    def holds(self, row: Mapping[str, object]) -> bool:
        """Whether it is true of a row."""
        return all(operand.holds(row) for operand in self.operands)

    def decide(self, region: Region) -> bool | None:
        """Whether it is true of a region: of all rows, of none, or None."""
        answers = [operand.decide(region) for operand in self.operands]
        if False in answers:
            return False
        return None if None in answers else True

    def __str__(self) -> str:
        return " and ".join(_in_parentheses(operand, (And, Or)) for operand in self.operands)


class Or(_Several):
    """Conditions of which at least one must hold."""

    def holds(self, row: Mapping[str, object]) -> bool:
        """Whether it is true of a row."""
        return any(operand.holds(row) for operand in self.operands)

    def decide(self, region: Region) -> bool | None:
        """Whether it is true of a region: of all rows, of none, or None."""
        answers = [operand.decide(region) for operand in self.operands]
        if True in answers:
            return True
        return None if None in answers else False

    def __str__(self) -> str:
        return " or ".join(_in_parentheses(operand, (Or,)) for operand in self.operands)


def _joined(several: Iterable[tuple[Comparison, ...]]) -> tuple[Comparison, ...]:
    """The comparisons of several conditions in one tuple."""
    return tuple(atom for atoms in several for atom in atoms)


def _common(answers: Iterable[bool]) -> bool | None:
    """The answer that all give; None if they differ."""
    found = set(answers)
    return found.pop() if len(found) == 1 else None


def _is_ordered(value: Label, operator: str, literal: Literal) -> bool:
    """Whether a value comes before or after a literal, as the operator says."""
    order = ORDER[operator]
    if isinstance(value, str) and isinstance(literal, str):
        return order(value, literal)  # type: ignore[arg-type]
    number = number_of(value)
    threshold = number_or_date(literal)
    return number is not None and threshold is not None and order(number, threshold)


def _is_equal(value: Label, literal: Literal) -> bool:
    """Whether a value equals a literal."""
    if isinstance(literal, str):
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if is_number and value == number_or_date(literal):
            return True
        return value not in (inf, -inf) and key_of(value) == literal
    if isinstance(literal, bool) and isinstance(value, str):
        word = value.lower()
        if word in ("true", "false"):
            return (word == "true") == literal
    return number_of(value) == float(literal)


# Text.


def _in_parentheses(condition: Condition, kinds: tuple[type[Condition], ...]) -> str:
    """The text of a condition, in parentheses if it is of one of these kinds."""
    return f"({condition})" if isinstance(condition, kinds) else str(condition)


def column_text(name: str) -> str:
    """A column as a condition writes it."""
    if _is_bare_word(name):
        return name
    escaped = name.replace("`", "``")
    return f"`{escaped}`"


def literal_text(literal: Literal) -> str:
    """A value as a condition writes it."""
    if isinstance(literal, bool):
        return str(literal).lower()
    if isinstance(literal, str):
        if _is_bare_word(literal):
            return literal
        escaped = literal.replace("'", "''")
        return f"'{escaped}'"
    short = f"{literal:g}"
    return short if float(short) == literal else repr(literal)


def _is_bare_word(text: str) -> bool:
    """Whether a text is read as one word."""
    is_word = re.fullmatch(WORD, text) is not None
    return is_word and re.fullmatch(NUMBER, text) is None and text.lower() not in KEYWORDS


# The parser.

NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.])"
WORD = r"\w[\w.]*"
TOKEN = re.compile(
    rf"""
    (?P<number>{NUMBER})
    | (?P<word>{WORD})
    | (?P<name>`(?:[^`]|``)*`)
    | (?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")
    | (?P<mark><=|>=|==|!=|<|>|\(|\)|,)
    """,
    re.VERBOSE,
)


class Token(NamedTuple):
    """A piece of a condition's text."""

    kind: str
    """``number``, ``word``, ``keyword``, ``name``, ``text``, ``mark`` or ``end``."""

    text: str
    """As it is read: keywords in lower case, names and texts without their quotes."""

    position: int
    """Where it begins."""


@lru_cache(maxsize=256)
def parse_condition(text: str) -> Condition:
    """The condition that a text states.

    Raises
    ------
    ConditionError
        If it states none; the error says where reading stopped.

    Examples
    --------
    >>> condition = parse_condition("lactate < 2 and ward in (A, 'B 1')")
    >>> condition.holds({"lactate": 1.5, "ward": "A"})
    True
    >>> print(condition)
    lactate < 2 and ward in (A, 'B 1')
    """
    return _Parser(text).condition()


class _Parser:
    """Reads a condition from left to right, with one token of look-ahead."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _tokens(text)
        self.place = 0
        self.depth = 0

    def condition(self) -> Condition:
        """The condition that the whole text states."""
        condition = self._disjunction()
        if self._next.kind != "end":
            raise self._error(f"expected 'and', 'or' or the end, found {self._found}")
        return condition

    # Tokens.

    @property
    def _next(self) -> Token:
        return self.tokens[self.place]

    @property
    def _found(self) -> str:
        """The next token as an error names it."""
        return "the end" if self._next.kind == "end" else repr(self._next.text)

    def _take(self) -> Token:
        token = self._next
        if token.kind != "end":
            self.place += 1
        return token

    def _takes(self, kind: str, *texts: str) -> bool:
        """Take the next token if it is one of these."""
        is_there = self._next.kind == kind and self._next.text in texts
        if is_there:
            self.place += 1
        return is_there

    def _expect(self, mark: str, hint: str) -> None:
        if not self._takes("mark", mark):
            raise self._error(f"expected {mark!r} {hint}, found {self._found}")

    def _error(self, message: str, position: int | None = None) -> ConditionError:
        place = self._next.position if position is None else position
        return ConditionError(message, self.text, place)

    # The grammar, loosest first.

    def _disjunction(self) -> Condition:
        operands = [self._conjunction()]
        while self._takes("keyword", "or"):
            operands.append(self._conjunction())
        return operands[0] if len(operands) == 1 else Or(tuple(operands))

    def _conjunction(self) -> Condition:
        operands = [self._negation()]
        while self._takes("keyword", "and"):
            operands.append(self._negation())
        return operands[0] if len(operands) == 1 else And(tuple(operands))

    def _negation(self) -> Condition:
        self.depth += 1
        if self.depth > MOST_NESTED:
            raise self._error(f"more than {MOST_NESTED} parentheses or negations within each other")
        condition = self._negation_at_depth()
        self.depth -= 1
        return condition

    def _negation_at_depth(self) -> Condition:
        if self._takes("keyword", "not"):
            return Not(self._negation())
        if self._takes("mark", "("):
            condition = self._disjunction()
            self._expect(")", "to close the parenthesis")
            return condition
        return self._comparison()

    def _comparison(self) -> Condition:
        if self._next.kind in ("number", "text") or self._is_boolean:
            return self._mirrored_comparison()
        column = self._column()
        if self._takes("keyword", "is"):
            return self._missing(column)
        if self._next.kind == "keyword" and self._next.text in ("in", "not"):
            return self._membership(column)
        operator = self._operator(f"after {column!r}")
        return self._compared(column, operator, self._value())

    def _mirrored_comparison(self) -> Condition:
        """``2 <= wage``, or ``2 <= wage < 4``."""
        low = self._value()
        operator = self._operator("after a value; a column's name goes in `backquotes`")
        column = self._column()
        first = self._compared(column, MIRRORED[operator], low)
        if self._next.kind != "mark" or self._next.text not in MIRRORED:
            return first
        operator = self._operator("")
        return And((first, self._compared(column, operator, self._value())))

    def _missing(self, column: str) -> Condition:
        is_negated = self._takes("keyword", "not")
        if not self._takes("keyword", "missing"):
            raise self._error(f"expected 'missing' after 'is', found {self._found}")
        comparison = Comparison(column, IS_MISSING)
        return Not(comparison) if is_negated else comparison

    def _membership(self, column: str) -> Condition:
        operator = "not in" if self._takes("keyword", "not") else "in"
        if not self._takes("keyword", "in"):
            raise self._error(f"expected 'in' after 'not', found {self._found}")
        self._expect("(", "before the values of 'in'")
        members = [self._value()]
        while self._takes("mark", ","):
            members.append(self._value())
        self._expect(")", "or ',' after a value of 'in'")
        return Comparison(column, operator, tuple(members))

    def _compared(self, column: str, operator: str, value: Literal) -> Comparison:
        if operator in ORDER and isinstance(value, bool):
            position = self.tokens[self.place - 1].position
            raise self._error(
                f"{operator!r} needs a number or text; compare true and false by ==", position
            )
        return Comparison(column, operator, value)

    # Words.

    @property
    def _is_boolean(self) -> bool:
        return self._next.kind == "keyword" and self._next.text in ("true", "false")

    def _operator(self, where: str) -> str:
        if self._next.kind == "mark" and self._next.text in MIRRORED:
            return self._take().text
        raise self._error(
            f"expected <, <=, >, >=, ==, !=, 'in' or 'is missing' {where}, found {self._found}"
        )

    def _column(self) -> str:
        if self._next.kind not in ("word", "name"):
            hint = ""
            if self._next.kind == "keyword":
                hint = "; a column of this name goes in `backquotes`"
            raise self._error(f"expected a column, found {self._found}{hint}")
        return self._take().text

    def _value(self) -> Literal:
        token = self._next
        if self._is_boolean:
            return self._take().text == "true"
        if token.kind == "number":
            number = float(token.text)
            if not isfinite(number):
                raise self._error(f"{token.text} is too large for a number")
            self._take()
            return number
        if token.kind in ("word", "text"):
            return self._take().text
        hint = "; text of this kind goes in 'quotes'" if token.kind == "keyword" else ""
        raise self._error(f"expected a number or text, found {self._found}{hint}")


def _tokens(text: str) -> list[Token]:
    """The pieces of a text, and a last one for its end."""
    tokens = []
    position = 0
    while True:
        # Blanks separate; the end has a token of its own.
        position += len(text[position:]) - len(text[position:].lstrip())
        if position == len(text):
            tokens.append(Token("end", "", position))
            return tokens

        match = TOKEN.match(text, position)
        if match is None:
            raise ConditionError(_advice_on(text, position), text, position)
        tokens.append(_token_of(match))
        position = match.end()


def _token_of(match: re.Match[str]) -> Token:
    kind = str(match.lastgroup)
    text = match.group()
    if kind == "word" and text.lower() in KEYWORDS:
        return Token("keyword", text.lower(), match.start())
    if kind in ("name", "text"):
        quote = text[0]
        text = text[1:-1].replace(quote * 2, quote)
    return Token(kind, text, match.start())


def _advice_on(text: str, position: int) -> str:
    """What is wrong with a character that begins no token."""
    character = text[position]
    if character == "=":
        return "a single '='; write == to compare"
    if character in "'\"`":
        return f"no closing {character}"
    return (
        f"unexpected {character!r}; names with blanks or signs go in `backquotes`, "
        "such texts in 'quotes'"
    )


# Texts that may be conditions.


def about(conditions: Iterable[Condition], columns: Collection[str]) -> list[Condition]:
    """What must be decided by these columns to decide the conditions.

    A condition on these columns alone is one; of a condition on others as well, each comparison of
    these columns is.

    >>> print(*about([parse_condition("ward == A and lactate < 2")], ["lactate"]))
    lactate < 2
    """
    found: list[Condition] = []
    for condition in conditions:
        if set(condition.columns) <= set(columns):
            found.append(condition)
        else:
            found += [atom for atom in condition.atoms() if atom.column in columns]
    return found


def incomparable(condition: Condition, regions: Iterable[Region]) -> str | None:
    """Why a column of intervals cannot be compared with a text of the condition; None if it can.

    >>> incomparable(parse_condition("wage > high"), [{"wage": Interval(low=2)}])
    "wage holds numbers or dates, and 'high' is neither; write a number, or a date as '2024-05-31'"
    """
    texts = []
    for atom in condition.atoms():
        for literal in atom.literals:
            if isinstance(literal, str):
                texts.append((atom.column, literal))
    if not texts:
        return None
    for region in regions:
        for column, text in texts:
            values = region.get(column)
            if isinstance(values, Interval) and values.number_of(text) is None:
                return f"{column} holds {_MEANT[values.is_date].format(shown(text))}"
    return None


_MEANT = {
    None: "numbers or dates, and {} is neither; write a number, or a date as '2024-05-31'",
    True: "dates, and {} is none; write a date as '2024-05-31', or seconds since 1970",
    False: "numbers, and {} is none",
}
"""What a column of intervals holds, and what to write: by whether its numbers are dates."""


def unranked(condition: Condition, orders: Mapping[str, Sequence[Label]]) -> str | None:
    """Why a text of the condition has no place in the order of its column; None if it has one.

    >>> unranked(parse_condition("size <= medium"), {"size": ["small", "mid", "large"]})
    "size has the order small, mid, large, in which 'medium' has no place"
    """
    for atom in condition.atoms():
        order = orders.get(atom.column, ())
        is_text = isinstance(atom.value, str) and number_or_date(atom.value) is None
        if order and is_text and atom.operator in ORDER and atom.value not in order:
            known = listed(list(map(key_of, order)), most=8)
            return f"{atom.column} has the order {known}, in which {shown(atom.value)} has no place"
    return None


def with_orders(condition: Condition, orders: Mapping[str, Sequence[object]]) -> Condition:
    """The condition with comparisons of ordered categories as lists of those that satisfy them.

    Parameters
    ----------
    orders : column -> its categories, in their order

    Examples
    --------
    >>> print(with_orders(parse_condition("size <= mid"), {"size": ["small", "mid", "large"]}))
    size in (small, mid)
    """
    if isinstance(condition, Not):
        return Not(with_orders(condition.operand, orders))
    if isinstance(condition, (And, Or)):
        operands = tuple(with_orders(operand, orders) for operand in condition.operands)
        return type(condition)(operands)
    if not isinstance(condition, Comparison) or condition.operator not in ORDER:
        return condition
    categories = list(orders.get(condition.column, ()))
    if condition.value not in categories:
        return condition
    rank = categories.index(condition.value)
    satisfies = ORDER[condition.operator]
    members = tuple(str(each) for i, each in enumerate(categories) if satisfies(i, rank))
    if not members:  # nothing comes before the first category, or after the last
        return Comparison(condition.column, "not in", tuple(str(each) for each in categories))
    return Comparison(condition.column, "in", members)


def looks_like_condition(text: object) -> bool:
    """Whether a text has a comparison in it, so that it may be meant as a condition.

    >>> looks_like_condition("wage >= 2"), looks_like_condition("cold")
    (True, False)
    """
    return isinstance(text, str) and SIGNS.search(text) is not None


def as_condition(text: object) -> Condition | None:
    """The condition that a text states; None if it states none."""
    if not looks_like_condition(text):
        return None
    try:
        return parse_condition(str(text))
    except ConditionError:
        return None
