"""Hypothesis strategies for algebra trees over every node and expression, meaningful or not."""

from __future__ import annotations

from hypothesis import strategies as st

from cepheid.algebra import expression as ex
from cepheid.algebra import pattern as pt

names = st.one_of(
    st.sampled_from(["x", "y", "A", "SHELF-READING", "and", "none", "ticks", "window", "it`s", ""]),
    st.text(max_size=4),
)
numbers = st.one_of(st.integers(-(2**63), 2**63), st.floats(allow_nan=False))
literals = st.one_of(st.none(), st.booleans(), numbers, st.text(max_size=6)).map(ex.Literal)
durations = st.builds(
    ex.Duration,
    st.one_of(st.integers(0, 10**6), st.floats(0, 1e6), st.builds(ex.Parameter, names)),
    st.one_of(st.none(), st.sampled_from(["s", "hours", "ticks", "or"]), names),
)
windows = st.one_of(st.integers(0, 2**40), durations)
leaves = st.one_of(
    literals,
    st.builds(ex.Parameter, names),
    st.builds(ex.Attribute, names, names),
    st.builds(ex.Previous, names, names),
    st.builds(ex.Every, names, names),
    st.builds(ex.Apart, names, names, windows),
    st.builds(ex.Aggregate, names, st.none() | names, st.none() | names),
)


def _larger(parts: st.SearchStrategy[ex.Expression]) -> st.SearchStrategy[ex.Expression]:
    several = st.lists(parts, max_size=3).map(tuple)
    return st.one_of(
        st.builds(ex.Arithmetic, st.sampled_from("+-*/"), parts, parts),
        st.builds(ex.Negative, parts),
        st.builds(ex.Call, st.one_of(st.sampled_from(sorted(ex.FUNCTIONS)), names), several),
        st.builds(ex.Compare, st.sampled_from(ex.COMPARISONS), parts, parts),
        st.builds(ex.And, several),
        st.builds(ex.Or, several),
        st.builds(ex.Not, parts),
    )


expressions = st.recursive(leaves, _larger, max_leaves=8)
absents = st.sampled_from(ex.Absent)
small = st.integers(-3, 3)
bounds = st.builds(
    pt.TimeBound,
    st.sampled_from(pt.Extreme),
    st.sampled_from(pt.Side),
    st.lists(st.lists(names, max_size=2).map(tuple), max_size=3).map(tuple),
    small,
    small,
)
named = st.lists(st.tuples(names, expressions), max_size=2).map(tuple)
components = st.builds(
    pt.Component,
    names,
    st.booleans(),
    st.floats(0, 1),
    st.builds(
        pt.GapModel,
        st.sampled_from(pt.Gap),
        st.lists(st.floats(allow_nan=False), max_size=2).map(tuple),
    ),
)
pattern_leaves = st.one_of(
    st.builds(pt.Atom, st.lists(names, max_size=2).map(tuple), names, expressions, absents),
    st.builds(
        pt.Lossy,
        st.lists(components, max_size=2).map(tuple),
        expressions,
        windows,
        st.floats(0, 1),
        st.booleans(),
        st.lists(st.tuples(names, names, expressions), max_size=2).map(tuple),
    ),
)


def _larger_pattern(parts: st.SearchStrategy[pt.Pattern]) -> st.SearchStrategy[pt.Pattern]:
    several = st.lists(parts, max_size=3).map(tuple)
    flag = st.booleans()
    order = st.sampled_from(pt.Order)
    selection = st.sampled_from(pt.Selection)
    maybe_name = st.none() | names
    pairs = st.lists(st.tuples(expressions, expressions), max_size=2).map(tuple)
    return st.one_of(
        st.builds(pt.Filter, parts, expressions, absents),
        st.builds(pt.Union, several),
        st.builds(pt.Dedup, parts, st.lists(expressions, max_size=2).map(tuple)),
        st.builds(pt.Map, parts, names, named, names, absents),
        st.builds(
            pt.Within,
            parts,
            windows,
            flag,
            st.sampled_from(pt.Measure),
            maybe_name,
            maybe_name,
            small,
        ),
        st.builds(pt.Conj, several, windows, flag),
        st.builds(pt.Seq, several, st.none() | windows, flag, order),
        st.builds(
            pt.Guard,
            parts,
            parts,
            bounds,
            bounds,
            flag,
            flag,
            st.none() | windows,
            expressions,
            absents,
            flag,
            order,
        ),
        st.builds(pt.Next, parts, parts, expressions, expressions, absents),
        st.builds(pt.Plus, parts, expressions, expressions, absents, st.none() | small),
        st.builds(pt.Timer, parts, windows),
        st.builds(
            pt.Except,
            parts,
            parts,
            names,
            expressions,
            absents,
            flag,
            st.lists(names, max_size=2).map(tuple),
        ),
        st.builds(pt.Absence, parts, windows, st.none() | st.integers(-(2**40), 2**40)),
        st.builds(pt.Nth, parts, small),
        st.builds(
            pt.Pair,
            parts,
            parts,
            flag,
            windows,
            selection,
            selection,
            small,
            small,
            st.sampled_from(pt.Consumption),
            pairs,
            expressions,
            absents,
        ),
        st.builds(
            pt.Agg, parts, windows, names, st.none() | expressions, named, expressions, names, names
        ),
    )


patterns = st.recursive(pattern_leaves, _larger_pattern, max_leaves=5)
