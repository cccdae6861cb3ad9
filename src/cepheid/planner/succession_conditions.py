"""Conditions of successors as bodies of generated functions over chains of nodes.

A function sees `m`, the match so far, and `q`, what comes next; both are chains (kernels.
match_nodes). It looks up the events that its attributes belong to, then evaluates the same text
that every kernel uses (kernel_expression). PREV and ALL look back along `m` (SPEC A1.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cepheid.algebra.expression import (
    Absent,
    And,
    Apart,
    Attribute,
    Compare,
    Every,
    Expression,
    Literal,
    Not,
    Or,
    Previous,
    ScalarType,
    attributes,
    rebuild,
    variables,
    walk,
)
from cepheid.kernels.match_nodes import FACTS
from cepheid.kernels.succession_shape import ALWAYS, Condition
from cepheid.model.errors import QueryError
from cepheid.planner.kernel_expression import (
    KernelSource,
    StringConstant,
    TypeOf,
    is_native,
    orders_strings,
)
from cepheid.planner.succession_plan import Equality

_RANK = "ci[ci.shape[0] - 1 - {}]"
"""The rank of a string by its code: ranks stand behind all constants, the first one last."""

_LAST, _EACH = "^", "*"
"""Marks before the name of a variable: its last event so far, each of its events so far."""


@dataclass(slots=True)
class Conditions:
    """Writes the conditions of one kernel and collects the columns and constants they read.

    `computed` are tests of single events that a kernel cannot take: they become columns of 0 and 1.
    `orders_strings` says that some condition has to be told the ranks of strings.
    What a variable is called in a chain depends on the operator, and on the side: `bound` tells it
    for the match so far, `coming` for what follows, whose variables these are.
    """

    type_of_column: TypeOf
    whole: dict[str, int] = field(default_factory=dict)
    real: dict[str, int] = field(default_factory=dict)
    computed: list[tuple[str, Expression]] = field(default_factory=list)
    ints: list[int | StringConstant] = field(default_factory=list)
    floats: list[float] = field(default_factory=list)
    orders_strings: bool = False

    def condition(
        self, expression: Expression, bound: Mapping[str, int], coming: Mapping[str, int]
    ) -> Condition:
        """A condition on a match and what follows it."""
        if expression == And(()):
            return ALWAYS
        body = _Body(self, bound, coming)
        return self._written(body, body.truth(expression))

    def key(
        self, equalities: tuple[Equality, ...], numbers: Mapping[str, int], *, of_bound: bool
    ) -> Condition:
        """A hash of the values that equalities compare, on one of their sides."""
        if not equalities:
            return ALWAYS
        body = _Body(self, *((numbers, {}) if of_bound else ({}, numbers)))
        answer = "0"
        for each in equalities:
            attribute = each.bound if of_bound else each.coming
            name = body.value(attribute.variable, attribute.name)
            # Compared with a float, an integer is one: both sides must fall together.
            kinds = [self.type_of(side.name) for side in (each.bound, each.coming)]
            if ScalarType.FLOAT in kinds:
                is_float = self.type_of(attribute.name) is ScalarType.FLOAT
                name = f"whole({name if is_float else f'to_float({name})'})"
            answer = f"mixed({answer}, {name})"
        return self._written(body, answer)

    def _written(self, body: _Body, answer: str) -> Condition:
        """The condition of a body, whose constants join those of the kernel."""
        first_int, first_float = len(self.ints), len(self.floats)
        self.ints += body.ints
        self.floats += body.floats
        return Condition(
            tuple(body.lines),
            answer,
            first_int if body.ints else 0,
            first_float if body.floats else 0,
        )

    def type_of(self, name: str) -> ScalarType:
        """The type of a column, or of a computed test."""
        if name.startswith("?"):
            return ScalarType.INT
        return self.type_of_column("", name)

    def column(self, name: str) -> str:
        """A column of the kernel: floats have a table of their own, others follow the facts."""
        if self.type_of(name) is ScalarType.FLOAT:
            return f"numbers[{self.real.setdefault(name, len(self.real))}, "
        return f"facts[{FACTS + self.whole.setdefault(name, len(self.whole))}, "

    def place(self, name: str) -> str:
        """A column's name inside the names of local variables."""
        if self.type_of(name) is ScalarType.FLOAT:
            return f"r{self.real.setdefault(name, len(self.real))}"
        return f"w{self.whole.setdefault(name, len(self.whole))}"

    def computed_test(self, test: Expression) -> str:
        """The name of the column that holds a test's answer for each event."""

        def without(part: Expression) -> Expression:
            return Attribute("", part.name) if isinstance(part, Attribute) else part

        plain = rebuild(test, without)
        for name, known in self.computed:
            if known == plain:
                return name
        name = f"?{len(self.computed)}"
        self.computed.append((name, plain))
        return name


class _Body:
    """One function under construction."""

    def __init__(self, of: Conditions, bound: Mapping[str, int], coming: Mapping[str, int]) -> None:
        self.of = of
        self.lines: list[str] = []
        self.ints: list[int | StringConstant] = []
        self.floats: list[float] = []
        self._bound = bound
        self._coming = coming
        self._known: set[str] = set()
        self._names = 0
        self._source = KernelSource(
            self._name_of,
            lambda _, name: of.type_of(name),
            int_constants=self.ints,
            float_constants=self.floats,
            first_int="i0 + ",
            first_float="f0 + ",
            rank_of=_RANK,
        )

    def truth(self, expression: Expression) -> str:
        match expression:
            case And(operands):
                return self._joined(" and ", operands, "True")
            case Or(operands):
                return self._joined(" or ", operands, "False")
            case Not(operand):
                return f"(not {self.truth(operand)})"
            case Apart():
                return self._apart(expression)
            case _:
                return self._atom(expression)

    def _joined(self, word: str, parts: tuple[Expression, ...], nothing: str) -> str:
        return f"({word.join(map(self.truth, parts))})" if parts else nothing

    def _atom(self, atom: Expression) -> str:
        looks_back = {
            (type(part), part.variable) for part in walk(atom) if isinstance(part, Every | Previous)
        }
        if not looks_back:
            return self._source.predicate(self._native(atom), Absent.FALSE)
        if len(looks_back) > 1:
            raise QueryError.of(
                "no-kernel",
                "a comparison can look back at one variable, by PREV or by ALL",
                help="split it into several comparisons",
            )
        ((kind, variable),) = looks_back
        mark = _EACH if kind is Every else _LAST
        plain = rebuild(
            atom,
            lambda part: (
                Attribute(mark + part.variable, part.name)
                if isinstance(part, Every | Previous)
                else part
            ),
        )
        answer = f"b{self._fresh()}"
        names = sorted(name for v, name in attributes(plain) if v == mark + variable)
        text = self._source.predicate(self._native(plain), Absent.FALSE)
        number = self._bound[variable]
        self.lines.append(f"{answer} = True")
        if kind is Previous:
            self.lines += [f"e = latest(nodes, m, {number})", "if e >= 0:"]
            self.lines += [f"    {self._look_up(mark + variable, name)}" for name in names]
            self.lines.append(f"    {answer} = {text}")
        else:
            self.lines += ["n = m", "while n >= 0:", f"    if nodes[n, 1] == {number}:"]
            self.lines.append("        e = nodes[n, 2]")
            self.lines += [f"        {self._look_up(mark + variable, name)}" for name in names]
            self.lines += [f"        if not {text}:", f"            {answer} = False"]
            self.lines += ["            break", "    n = nodes[n, 0]"]
        return answer

    def _apart(self, atom: Apart) -> str:
        assert isinstance(atom.window, int)
        self.ints.append(atom.window)
        first, second = (self._event(variable) for variable in (atom.first, atom.second))
        distance = f"abs(facts[END, {second} - base] - facts[END, {first} - base])"
        within = f"{distance} <= ci[i0 + {len(self.ints) - 1}]"
        return f"({first} >= 0 and {second} >= 0 and {within})"

    def _native(self, atom: Expression) -> Expression:
        if is_native(atom, lambda _, name: self.of.type_of(name)):
            return atom
        used = variables(atom)
        if len(used) != 1:
            if orders_strings(atom, lambda _, name: self.of.type_of(name)):
                self.of.orders_strings = True
                return atom
            raise QueryError.of(
                "no-kernel",
                "a comparison of texts of two events that are computed has no kernel",
                help="compare the fields themselves, or compute one side in a query before",
            )
        (variable,) = used
        name = self.of.computed_test(atom)
        return Compare("=", Attribute(variable, name), Literal(1))

    def value(self, variable: str, name: str) -> str:
        """The local name of an attribute of the last event of a variable in `m` or `q`."""
        event = self._event(variable)
        local = f"v{event}_{self.of.place(name)}"
        if local not in self._known:
            self._known.add(local)
            self.lines.append(f"{local} = {self._fetched(name, event)}")
        return local

    def _event(self, variable: str) -> str:
        """The local name of the last event of a variable in `m` or `q`, below 0 for none."""
        side = "q" if variable in self._coming else "m"
        number = (self._coming if side == "q" else self._bound)[variable]
        event = f"{side}{number}"
        if event not in self._known:
            self._known.add(event)
            self.lines.append(f"{event} = latest(nodes, {side}, {number})")
        return event

    def _name_of(self, variable: str, name: str) -> str:
        if variable[0] in (_LAST, _EACH):
            return self._back_name(variable, name)
        return self.value(variable, name)

    def _back_name(self, variable: str, name: str) -> str:
        kind = "l" if variable[0] == _LAST else "a"
        return f"{kind}{self._bound[variable[1:]]}_{self.of.place(name)}"

    def _look_up(self, variable: str, name: str) -> str:
        return f"{self._back_name(variable, name)} = {self._fetched(name, 'e')}"

    def _fetched(self, name: str, event: str) -> str:
        kind = self.of.type_of(name)
        undefined = "np.nan" if kind is ScalarType.FLOAT else "NULL_INT"
        return f"{self.of.column(name)}{event} - base] if {event} >= 0 else {undefined}"

    def _fresh(self) -> int:
        self._names += 1
        return self._names
