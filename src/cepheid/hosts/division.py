"""How a program's work may be divided: by a key that all components share, or by time.

By key is right only if equality on the key covers every component of every stage, the negated ones
included, and while no event lacks its key: equality by way of an absent attribute is not
transitive. By time is right for one stage with a window, each match being owned by its first event.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cepheid.algebra.expression import Attribute, ScalarType
from cepheid.hosts.prepared_program import PreparedProgram
from cepheid.planner.match_schema import scalar_type
from cepheid.planner.prepare import Prepared
from cepheid.planner.sequence_plan import Place, find_key
from cepheid.planner.succession_plan import SuccessionPlan, shared_key


@dataclass(frozen=True, slots=True)
class KeyByType:
    """The key attributes of each event type; `of_any` when all types share them."""

    width: int
    of: Mapping[str, tuple[str, ...]]
    of_any: tuple[str, ...] | None = None

    def groups(self) -> dict[tuple[str, ...], tuple[str, ...]]:
        """The event types by their key attributes."""
        found: dict[tuple[str, ...], tuple[str, ...]] = {}
        for name, attributes in sorted(self.of.items()):
            found[attributes] = (*found.get(attributes, ()), name)
        return found

    def __str__(self) -> str:
        """The attributes, for people."""
        if self.of_any is not None:
            return f"[{', '.join(self.of_any)}]"
        return "; ".join(
            f"[{', '.join(attributes)}] of {', '.join(types)}"
            for attributes, types in self.groups().items()
        )


_NOTHING_SHARED = {
    False: "no equality test holds all components together",
    True: "no FILTER holds all components together by equality",
}


@dataclass(frozen=True, slots=True)
class Undivided:
    """Why the work cannot be divided in some way."""

    reason: str


@dataclass(frozen=True, slots=True)
class TimeReach:
    """How far events around its first one can matter to a match, in the time column's unit."""

    back: int
    forward: int


def key_of(program: PreparedProgram) -> KeyByType | Undivided:
    """The key by which events can be told apart into groups that share no match."""
    if program.is_chained:
        return _common_key(program)
    (stage,) = program.stages
    columns = _covering_columns(stage)
    if not columns:
        return Undivided(_NOTHING_SHARED[stage.is_succession])
    of: dict[str, tuple[str, ...]] = {}
    shared = {tuple(column[c.variable] for column in columns) for c in program.components()}
    if len(shared) == 1:
        return KeyByType(
            len(columns), {t: next(iter(shared)) for t in program.types or ()}, next(iter(shared))
        )
    for component in program.components():
        attributes = tuple(column[component.variable] for column in columns)
        if not component.types:
            return Undivided("components of any type are compared by different attributes")
        for name in component.types:
            if of.setdefault(name, attributes) != attributes:
                return Undivided(f"events of type {name} are compared by different attributes")
    return KeyByType(len(columns), of)


def _covering_columns(stage: Prepared) -> list[dict[str, str]]:
    """The key columns that every component has, each as the attribute of each variable."""
    plan = stage.plan
    chosen = stage.options.plan.partition
    if chosen == "none":
        return []
    if isinstance(plan, SuccessionPlan):
        shared = shared_key(plan)
        return [shared] if shared and _are_comparable(stage, set(shared.values())) else []
    key = find_key(plan, None if chosen == "all" else frozenset((chosen,)))
    if key is None:
        return []
    columns = []
    for attribute in key.of[plan.components[0].variable]:
        alone = find_key(plan, frozenset((attribute,)))
        if alone is None or any(n.variable not in alone.of for n in plan.negations):
            continue
        column = {variable: names[0] for variable, names in alone.of.items()}
        if _are_comparable(stage, set(column.values())):
            columns.append(column)
    return columns


def _are_comparable(stage: Prepared, names: set[str]) -> bool:
    """Whether values of these columns are equal exactly where their bits are."""
    events = stage.form.events
    kinds = [events.field(name).type for name in names if events.get_field_index(name) >= 0]
    scalars = {scalar_type(kind) for kind in kinds}
    if ScalarType.TIMESTAMP in scalars:  # a date is no time stamp, and zones differ
        return all(kind.equals(kinds[0]) for kind in kinds)
    return len(scalars - {ScalarType.UNKNOWN}) <= 1


def _common_key(program: PreparedProgram) -> KeyByType | Undivided:
    """Attributes that are the key of every stage under one name, and are handed on by RETURN."""
    common: set[str] | None = None
    for stage in program.stages:
        names = {
            attribute
            for column in _covering_columns(stage)
            if len(set(column.values())) == 1
            for attribute in column.values()
        }
        if stage is not program.stages[-1]:
            names &= _handed_on(stage)
        common = names if common is None else common & names
    if not common:
        return Undivided("the stages of the program share no key that RETURN hands on by its name")
    key = tuple(sorted(common))
    return KeyByType(len(key), dict.fromkeys(program.types or (), key), key)


def _handed_on(stage: Prepared) -> set[str]:
    output = stage.query.output
    variables = {component.variable for component in stage.plan.components}
    return {
        name
        for name, expression in (output.attributes if output else ())
        if isinstance(expression, Attribute)
        and expression.name == name
        and expression.variable in variables
    }


def reach_of(program: PreparedProgram) -> TimeReach | Undivided:
    """How far a slice of time must look beyond its edges."""
    if program.is_chained:
        return Undivided("a program of several stages is not divided by time")
    plan = program.stages[0].plan
    if isinstance(plan, SuccessionPlan):
        if plan.window is None:
            return Undivided("no window spans the whole match")
        return TimeReach(0, plan.window + 1)
    if plan.window is None and plan.length > 1:
        return Undivided("the query has no WITHIN")
    forward = 0 if plan.length == 1 or plan.window is None else plan.window
    back = 0
    for negation in plan.negations:
        match negation.place:
            case Place.START:
                back = max(back, negation.reach)
            case Place.END:
                forward = max(forward, negation.reach + 1)
            case Place.MIDDLE:
                pass  # it lies between two positive events
    return TimeReach(max(back, 0), max(forward, 0))
