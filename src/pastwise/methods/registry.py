"""The registry of methods: one entry serves the command line, files, studies and figures.

A class enters it by a decorator in the file that defines it:

    @register(colour="#0072B2")
    @dataclass(frozen=True)
    class TL:
        name: ClassVar[str] = "TL"
        ...

Every module of this package is imported when the package is, so a new file is all that a new
method needs. Another distribution adds methods by an entry point of the group
``pastwise.methods`` that names a module.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from importlib.metadata import entry_points
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np

from pastwise._numerics.checks import require_truth_value
from pastwise.errors import ParameterError, PluginError, shown
from pastwise.methods.base import AnyMethod

Class = TypeVar("Class", bound=type)

JSON = Any
"""Plain values: numbers, text, None, and lists and dictionaries of them."""

PlainValue = float | bool | None
"""What a hyper-parameter in a text may be."""

TRUTH_VALUES = {"true": True, "false": False}
"""How truth values are written outside Python."""

DEFAULT = "TL_foresight"
"""Name of the method that learns where none is named; ``"TL"`` is the paper's."""

ALTERNATIVES = (DEFAULT, "TL")
"""Names of the methods whose rules an evaluation shows next to a learned one."""

LONGEST_TEXT = 500
"""Characters of the longest text of a method that is read; all hyper-parameters take fewer."""

SPARE_COLOURS = ("#332288", "#117733", "#882255", "#AA4499", "#44AA99", "#999933")
"""For methods that do not choose a colour (from Paul Tol's palette for every eye)."""


@dataclass(frozen=True)
class Entry:
    """A registered method.

    Attributes
    ----------
    make : callable
        The class; without arguments it makes the method with its default hyper-parameters.
    summary : str
        The first line of the class's docstring.
    colour : str
        Colour in figures.
    learns : bool
        Whether a log and a goal are all that it needs. FPD, which needs the true model, does not.
    is_reference : bool
        Whether it is there to be compared with: random actions, the logged behaviour.
    """

    name: str
    make: Callable[..., AnyMethod]
    summary: str
    colour: str
    learns: bool
    is_reference: bool


_ENTRIES: dict[str, Entry] = {}


def register(
    *, colour: str | None = None, learns: bool = True, is_reference: bool = False
) -> Callable[[Class], Class]:
    """Enter a class under its ``name``; see `Entry` for what the arguments mean."""

    def enter(method: Class) -> Class:
        name: str = method.name  # type: ignore[attr-defined]
        if name in _ENTRIES:
            raise ParameterError(f"a method named {name!r} is registered already; choose another")
        summary = (method.__doc__ or name).strip().splitlines()[0]
        chosen = colour or _spare_colour()
        _ENTRIES[name] = Entry(name, method, summary, chosen, learns, is_reference)
        return method

    return enter


def _spare_colour() -> str:
    """A spare colour that no method has, as long as there is one."""
    taken = {entry.colour for entry in _ENTRIES.values()}
    free = [colour for colour in SPARE_COLOURS if colour not in taken]
    return free[0] if free else SPARE_COLOURS[len(_ENTRIES) % len(SPARE_COLOURS)]


@cache
def _load_plugins() -> None:
    """Import the modules that other distributions announce."""
    for plugin in entry_points(group="pastwise.methods"):
        try:
            plugin.load()
        except Exception as error:
            package = "a package" if plugin.dist is None else f"the package {plugin.dist.name!r}"
            raise PluginError(
                f"{package} adds methods by {plugin.value!r}, which cannot be loaded: "
                f"{type(error).__name__}: {error}; repair or uninstall it"
            ) from error


def entries() -> Mapping[str, Entry]:
    """All registered methods, by name, in the order of registration."""
    _load_plugins()
    return _ENTRIES


def names() -> list[str]:
    """Names of the methods that learn from a log; references come last."""
    learning = [entry for entry in entries().values() if entry.learns]
    return [entry.name for entry in sorted(learning, key=lambda entry: entry.is_reference)]


def colour(name: str) -> str:
    """Colour of a method in figures."""
    if name not in entries():
        raise ParameterError(f"unknown method {name!r}; choose one of {', '.join(entries())}")
    return entries()[name].colour


def create(text: str, /, **hyper_parameters: Any) -> AnyMethod:
    """A method by its name, with some of its hyper-parameters.

    Hyper-parameters may also stand in the text, as `text_of` writes them.

    Examples
    --------
    >>> create("TL", prior_count=5.0).prior_count
    5.0
    >>> create("TL(prior_count=5.0)").prior_count
    5.0
    """
    name, written = _name_and_parameters(text)
    entry = entries().get(name)
    if entry is not None and not entry.learns:
        raise ParameterError(
            f"{name} does not learn from a log: it needs the true model of the system; "
            f"choose one of {', '.join(names())}"
        )
    if entry is None:
        named = {each.make.__name__: each.name for each in entries().values()}
        hint = f", the class of {named[name]}" if name in named else ""
        raise ParameterError(f"unknown method {name!r}{hint}; choose one of {', '.join(names())}")
    defaults = {field.name: field.default for field in fields(entry.make)}  # type: ignore[arg-type]
    given = {**written, **hyper_parameters}
    for parameter, value in given.items():
        if parameter not in defaults:
            choice = f"choose one of {', '.join(defaults)}" if defaults else "it has none"
            raise ParameterError(f"{name} has no hyper-parameter {parameter!r}; {choice}")
        _require_kind(parameter, value, defaults[parameter])
    return entry.make(**given)


def _name_and_parameters(text: str) -> tuple[str, dict[str, PlainValue]]:
    """The parts of ``NAME(parameter=number, ...)``; a text without brackets is a name."""
    if not text.endswith(")"):
        return text, {}
    unreadable = ParameterError(
        f"cannot read the method {shown(text)}; write its name, and numbers, true or false "
        "as in TL(prior_count=5)"
    )
    if len(text) > LONGEST_TEXT:
        raise unreadable
    try:
        call = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        raise unreadable from None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
        raise unreadable

    # Each parameter once, and numbers only.
    parameters: dict[str, PlainValue] = {}
    for keyword in call.keywords:
        if keyword.arg is None or keyword.arg in parameters:
            raise unreadable
        try:
            value = _value_of(keyword.value)
        except (TypeError, ValueError):
            raise unreadable from None
        if not _is_plain(value):
            raise unreadable
        parameters[keyword.arg] = value
    return call.func.id, parameters


def _value_of(expression: ast.expr) -> Any:
    """The value of a literal; truth values may be written in lower case, as on the command line."""
    if isinstance(expression, ast.Name) and expression.id in TRUTH_VALUES:
        return TRUTH_VALUES[expression.id]
    return ast.literal_eval(expression)


def with_parameters(method: AnyMethod, /, **hyper_parameters: Any) -> AnyMethod:
    """The same method with some hyper-parameters replaced.

    Examples
    --------
    >>> with_parameters(create("TL_explore", window=5), threshold=0.5).window
    5
    """
    present = {field.name: getattr(method, field.name) for field in fields(method)}  # type: ignore[arg-type]
    return create(method.name, **{**present, **hyper_parameters})


def _require_kind(parameter: str, value: Any, default: Any) -> None:
    """Refuse a number where the default is a truth value, and the like; methods check ranges."""
    if isinstance(default, bool):
        require_truth_value(parameter, value)
    elif isinstance(value, bool):
        raise ParameterError(f"{parameter} must not be true or false, but got {value!r}")
    elif isinstance(default, int) and not isinstance(value, Integral):
        raise ParameterError(f"{parameter} must be a whole number, not {shown(value)}")
    elif isinstance(default, float) and not isinstance(value, Real):
        raise ParameterError(f"{parameter} must be a number, not {shown(value)}")


# Hyper-parameters as plain values, for files.


def to_settings(method: AnyMethod) -> dict[str, JSON]:
    """Name and hyper-parameters of a registered method as plain values."""
    entry = entries().get(getattr(method, "name", ""))
    if entry is None or type(method) is not entry.make:
        raise ParameterError(
            f"{type(method).__name__} cannot be saved: only registered methods can "
            "(pastwise.methods.register)"
        )
    return {"name": entry.name, **_fields_to_plain(method, sys.modules[type(method).__module__])}


def text_of(method: AnyMethod) -> str:
    """Name and hyper-parameters of a registered method as `create` reads them, for links and lists.

    Hyper-parameters that have their defaults are left out. Tables, functions and
    explorers are shown as ``...``, which `create` refuses.

    Examples
    --------
    >>> text_of(create("TL_foresight", past_skill=1))
    'TL_foresight(past_skill=1)'
    """
    settings = to_settings(method)
    name = settings.pop("name")
    defaults = to_settings(entries()[name].make())
    written = [
        f"{parameter}={value if _is_plain(value) else '...'}"
        for parameter, value in settings.items()
        if value != defaults[parameter]
    ]
    return f"{name}({', '.join(written)})" if written else name


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float)


def from_settings(settings: Mapping[str, JSON]) -> AnyMethod:
    """The method that `to_settings` described."""
    given = dict(settings)
    name = given.pop("name")
    entry = entries().get(name)
    if entry is None:
        raise ParameterError(
            f"unknown method {name!r}; the registered ones are {', '.join(entries())}"
        )
    module = sys.modules[entry.make.__module__]
    hyper_parameters = {key: _from_plain(value, module) for key, value in given.items()}
    return create(name, **hyper_parameters)


def _fields_to_plain(value: Any, module: Any) -> dict[str, JSON]:
    return {f.name: _to_plain(f.name, getattr(value, f.name), module) for f in fields(value)}


def _to_plain(parameter: str, value: Any, module: Any) -> JSON:
    """Numbers and text as they are; functions and dataclasses by their names in the module."""
    if isinstance(value, np.generic | np.ndarray) and value.ndim == 0:
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray | list | tuple):
        return {"array": np.asarray(value).tolist()}
    if is_dataclass(value) and getattr(module, type(value).__name__, None) is type(value):
        return {"class": type(value).__name__, **_fields_to_plain(value, module)}
    name = getattr(value, "__name__", "")
    if callable(value) and getattr(module, name, None) is value:
        return {"function": name}
    raise ParameterError(
        f"{parameter}, of type {type(value).__name__}, cannot be saved: only numbers, text and "
        "the library's own functions can"
    )


def _from_plain(value: JSON, module: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    if set(value) == {"array"}:
        return np.asarray(value["array"])
    given = dict(value)
    name = given.pop("class", None) or given.pop("function", None)
    found = getattr(module, str(name), None)
    if "function" in value and callable(found) and not isinstance(found, type) and not given:
        return found
    if "class" in value and isinstance(found, type) and is_dataclass(found):
        return found(**{key: _from_plain(item, module) for key, item in given.items()})
    raise ParameterError(f"{name!r} is not a hyper-parameter of a method in {module.__name__}")
