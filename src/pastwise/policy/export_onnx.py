r"""A policy as an ONNX model, for run times of any language.

Each raw column becomes a *code*: a number falls into a cell between the cuts of all regions, a text
is one of the known labels, unknown, or missing. For every code a table says which states it
excludes. The state of a row is the one that none of its columns excludes:

.. math:: s = \arg\max_s [\sum_c E_c[\mathrm{code}_c, s] = 0]

Inputs are named like the columns, each ``[rows]``: numbers as doubles (missing: not-a-number) and
anything else as text, labels by their keys (missing: the empty text). Outputs are ``state`` and
``action`` as text, empty for a row without a state, and ``probabilities`` ``[rows, actions]``,
not-a-number for such a row.
"""

from __future__ import annotations

from math import inf, nan, nextafter
from pathlib import Path
from typing import Any

import numpy as np

from pastwise._files import replacing
from pastwise.data.regions import Anything, Categories, Interval, Point, Values
from pastwise.data.space import key_of
from pastwise.errors import MissingDependencyError, ParameterError
from pastwise.policy.export import Export

OPSET = 17
"""Version of the standard's operators: the first with all that is needed, of 2022."""

ML_OPSET = 3
"""The same for the operators of classical machine learning."""

Cut = tuple[float, bool]
"""A number, and whether the numbers after the cut begin just above it, not with itself."""


class Graph:
    """Nodes and constants of a model, as they are added."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node; returns the name of its result."""
        from onnx import helper

        name = str(attributes.pop("result", f"result {len(self.nodes)}"))
        self.nodes.append(helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def constant(self, values: Any) -> str:
        """Add a constant; returns its name."""
        from onnx import numpy_helper

        name = f"constant {len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name


def write_onnx(export: Export, path: str | Path) -> None:
    """Write the model."""
    try:
        import onnx
    except ImportError:
        raise MissingDependencyError(
            "an ONNX model needs onnx: pip install 'pastwise[onnx]'"
        ) from None
    model = to_onnx(export)
    with replacing(path) as temporary:
        onnx.save(model, str(temporary))


def to_onnx(export: Export) -> Any:
    """The model, checked."""
    import onnx
    from onnx import TensorProto, helper

    if not export.columns:
        raise ParameterError(
            "an ONNX model has an input for each column that the policy looks at, and this policy "
            "looks at none: it has a single state. Export it in another form"
        )
    graph = Graph()

    # How many columns exclude each state: [rows, S].
    excluded = ""
    for column in export.columns:
        is_number = column in export.numeric
        code = (
            _number_code(graph, export, column) if is_number else _text_code(graph, export, column)
        )
        table = graph.constant(_exclusions(export, column))
        by_column = graph.add("Gather", table, code, axis=0)
        excluded = graph.add("Add", excluded, by_column) if excluded else by_column

    # The state that none excludes; the number of states if there is none.
    is_state = graph.add("Equal", excluded, graph.constant(np.float32(0)))
    matches = graph.add("Cast", is_state, to=TensorProto.FLOAT)
    first = graph.add("ArgMax", matches, axis=1, keepdims=0)
    any_match = graph.add("ReduceMax", matches, axes=[1], keepdims=0)
    has_state = graph.add("Cast", any_match, to=TensorProto.BOOL)
    none = graph.constant(np.int64(len(export.states)))
    state = graph.add("Where", has_state, first, none)

    # Its label, action and rule.
    keys = [state.key for state in export.states]
    best = [key_of(export.actions[state.best]) for state in export.states]
    rule = [list(state.probabilities) for state in export.states]
    unknown_rule = [nan] * len(export.actions)
    graph.add("Gather", graph.constant(_texts([*keys, ""])), state, axis=0, result="state")
    graph.add("Gather", graph.constant(_texts([*best, ""])), state, axis=0, result="action")
    graph.add(
        "Gather",
        graph.constant(np.array([*rule, unknown_rule])),
        state,
        axis=0,
        result="probabilities",
    )

    inputs = []
    for column in export.columns:
        kind = TensorProto.DOUBLE if column in export.numeric else TensorProto.STRING
        inputs.append(helper.make_tensor_value_info(column, kind, ["rows"]))
    outputs = [
        helper.make_tensor_value_info("state", TensorProto.STRING, ["rows"]),
        helper.make_tensor_value_info("action", TensorProto.STRING, ["rows"]),
        helper.make_tensor_value_info(
            "probabilities", TensorProto.DOUBLE, ["rows", len(export.actions)]
        ),
    ]
    model = helper.make_model(
        helper.make_graph(graph.nodes, "policy", inputs, outputs, graph.constants),
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)],
        ir_version=8,
        producer_name="pastwise",
        producer_version=export.version,
        doc_string=export.title,
    )
    onnx.checker.check_model(model)
    return model


# Codes of columns.


def _number_code(graph: Graph, export: Export, column: str) -> str:
    """The cell that a number lies in, from 0 on; the last code is for a missing one."""
    from onnx import TensorProto

    cuts = cuts_of(export, column)
    number = graph.add("Unsqueeze", column, graph.constant(np.array([1])))
    reached = graph.constant(np.zeros(1, dtype=np.int64))
    for is_above in (False, True):
        thresholds = np.array([[cut for cut, above in cuts if above == is_above]])
        if not thresholds.size:
            continue
        operator = "Greater" if is_above else "GreaterOrEqual"
        is_reached = graph.add(operator, number, graph.constant(thresholds))
        counted = graph.add("Cast", is_reached, to=TensorProto.INT64)
        axes = graph.constant(np.array([1]))
        reached = graph.add("Add", reached, graph.add("ReduceSum", counted, axes, keepdims=0))
    missing = graph.constant(np.int64(len(cuts) + 1))
    return graph.add("Where", graph.add("IsNaN", column), missing, reached)


def _text_code(graph: Graph, export: Export, column: str) -> str:
    """The place of a text among the known labels, then missing, then unknown."""
    known = labels_of(export, column)
    codes = {label: place for place, label in enumerate([*known, ""])}

    # True and false may be written in other ways than the log has them.
    for word, label in export.words.get(column, {}).items():
        if label in codes:
            for spelled in (word, word.capitalize(), word.upper()):
                codes.setdefault(spelled, codes[label])
    return graph.add(
        "LabelEncoder",
        column,
        domain="ai.onnx.ml",
        keys_strings=list(codes),
        values_int64s=list(codes.values()),
        default_int64=len(known) + 1,
    )


def cuts_of(export: Export, column: str) -> list[Cut]:
    """The cuts between the values that the states allow a numeric column, ascending."""
    cuts: set[Cut] = set()
    for state in export.states:
        values = state.region.get(column)
        if isinstance(values, Interval):
            if values.low > -inf:
                cuts.add((values.low, not values.low_closed))
            if values.high < inf:
                cuts.add((values.high, values.high_closed))
    return sorted(cuts)


def labels_of(export: Export, column: str) -> list[str]:
    """Keys of the labels that the states name for a column."""
    known: set[str] = set()
    for state in export.states:
        values = state.region.get(column)
        if isinstance(values, Point):
            known.add(key_of(values.value))
        elif isinstance(values, Categories):
            known.update(key_of(value) for value in values.values)
    return sorted(known - {""})


def _exclusions(export: Export, column: str) -> Any:
    """Which states each code of a column excludes: [codes, S]."""
    if column in export.numeric:
        # A number of each cell.
        members: list[object] = [-inf]
        for cut, is_above in cuts_of(export, column):
            members.append(nextafter(cut, inf) if is_above else cut)
    else:
        members = [*labels_of(export, column)]
    missing = len(members)
    unknown = None if column in export.numeric else missing + 1
    size = missing + 1 if unknown is None else missing + 2
    excluded = np.zeros((size, len(export.states)), dtype=np.float32)
    for place, state in enumerate(export.states):
        values = state.region.get(column, Anything())
        for code, member in enumerate(members):
            excluded[code, place] = not _holds(values, member)
        excluded[missing, place] = column in export.required or not values.contains(None)
        if unknown is not None:
            takes_unknown = isinstance(values, Anything) or (
                isinstance(values, Categories) and values.is_complement
            )
            excluded[unknown, place] = not takes_unknown
    return excluded


def _holds(values: Values, member: object) -> bool:
    """Whether a column may have a number, or the label with a key."""
    if isinstance(values, Point):
        return key_of(values.value) == member
    if isinstance(values, Categories):
        is_listed = member in {key_of(value) for value in values.values}
        return is_listed != values.is_complement
    return values.contains(member)


def _texts(values: list[str]) -> Any:
    return np.array(values, dtype=object)
