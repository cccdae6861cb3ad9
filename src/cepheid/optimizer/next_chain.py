"""A chain of successors `A ; B ; C` apart from its brackets: what may be bracketed anew, and how.

`Next(Next(A, B), C)` and `Next(A, Next(B, C))` find the same matches, with ties and intervals, if

* every operand from the third on has matches of one length. Of two candidates with equal last
  stamps NEXT's order prefers the longer one, and in brackets with B the stamps of B take part in
  that comparison (C = D | Y;D: b@1 y@[2,4] b@3 d@6);
* a condition among candidates (`skip`, the paper's phi) is equality of one key, or several, that
  all operands share: then each key has a chain of its own. Any other skip chooses the successor of
  all that stands before it, so that all must stay in one bracket on its left;
* a condition on the successor (`test`, theta), or a window between two ends, belongs to a bracket
  that begins with the first operand. There it only removes matches, and each m alone: it can be
  tested at any later such bracket. Inside another bracket it decides which matches are candidates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from cepheid.algebra.expression import (
    Absent,
    Attribute,
    Compare,
    Expression,
    conjunction,
    conjuncts,
    variables,
)
from cepheid.algebra.pattern import (
    Atom,
    Except,
    Filter,
    Measure,
    Next,
    Pattern,
    Timer,
    Union,
    Within,
    bound_variables,
)
from cepheid.optimizer.next_search import Tree


@dataclass(frozen=True)
class Chain:
    """Operands in order, their brackets as written, and the conditions by the place they need.

    `keys` holds, for each key, the attribute of every operand. A skip stands at the operand that it
    chooses; a test or window at the last operand that it looks at.
    """

    root: Next
    operands: tuple[Pattern, ...]
    written: Tree
    absent: Absent
    keys: tuple[tuple[Attribute, ...], ...]
    equalities: tuple[Compare, ...]
    skips: tuple[tuple[int, Expression], ...]
    tests: tuple[tuple[int, Expression], ...]
    windows: tuple[tuple[int, Within], ...]

    def allows(self, first: int, last: int) -> bool:
        """Whether these operands may be put in brackets of their own."""
        return first == 0 or not any(first < at <= last for at, _ in self.skips)

    def bracketed(self, tree: Tree) -> Pattern:
        """The chain with other brackets."""
        return self._build(tree)[0]

    def _build(self, tree: Tree) -> tuple[Pattern, int, int]:
        if isinstance(tree, int):
            return self.operands[tree], tree, tree
        left, first, middle = self._build(tree[0])
        right, _, last = self._build(tree[1])
        begins = first == 0
        skips = [skip for at, skip in self.skips if begins and at == middle + 1]
        tests = [test for at, test in self.tests if begins and middle < at <= last]
        built: Pattern = replace(
            self.root,
            first=left,
            second=right,
            skip=conjunction([*self._key_tests(first, middle, last), *skips]),
            test=conjunction(tests),
            absent=self.absent,
        )
        for at, window in self.windows:
            if begins and middle < at <= last:
                built = replace(window, pattern=built)
        return built, first, last

    def _key_tests(self, first: int, middle: int, last: int) -> Iterator[Expression]:
        """Equality of each key on both sides: the user's own where there is one, for its place."""
        for key in self.keys:
            left, right = key[first : middle + 1], key[middle + 1 : last + 1]
            written = (
                each
                for each in self.equalities
                if (each.left in left and each.right in right)
                or (each.right in left and each.left in right)
            )
            yield next(written, Compare("=", left[-1], right[0]))


def chain_of(node: Pattern) -> Chain | None:
    """The chain that a node is the root of; None for fewer than three operands, or none to move."""
    if not isinstance(node, Next):
        return None
    for by_key in (True, False):
        chain = _Reading(node, by_key).chain()
        if chain is not None and len(chain.operands) > 2:
            return chain
    return None


@dataclass
class _Reading:
    """One walk over the Nexts of a chain; with `by_key` equalities are read as tests of a key.

    `nexts` are those that were opened: the first operand of each, the last one of its left side,
    and its equalities.
    """

    root: Next
    by_key: bool
    operands: list[Pattern] = field(default_factory=list)
    nexts: list[tuple[int, int, list[Compare]]] = field(default_factory=list)
    skips: list[tuple[int, Expression]] = field(default_factory=list)
    tests: list[Expression] = field(default_factory=list)
    windows: list[Within] = field(default_factory=list)
    absents: set[Absent] = field(default_factory=set)

    def chain(self) -> Chain | None:
        tree = self._read(self.root, begins=True)
        if len(self.absents) > 1 or Absent.ERROR in self.absents:
            return None
        if any(_length(operand) is None for operand in self.operands[2:]):
            return None
        keys = self._keys()
        skips = list(self.skips)
        equalities: list[Compare] = []
        for first, middle, tests in self.nexts:
            for test in tests:
                if any(test.left in key and test.right in key for key in keys):
                    equalities.append(test)
                elif first == 0 and _names(test) & self._after(middle + 1) <= self._of(middle + 1):
                    skips.append((middle + 1, test))
                else:
                    return None
        return Chain(
            self.root,
            tuple(self.operands),
            tree,
            next(iter(self.absents), self.root.absent),
            keys,
            tuple(equalities),
            tuple(skips),
            tuple((self._last_of(_names(test)), test) for test in self.tests),
            tuple((self._last_of({w.first or "", w.second or ""}), w) for w in self.windows),
        )

    def _read(self, node: Pattern, *, begins: bool) -> Tree:
        """Adds the operands below; `begins` holds for brackets that begin with the first one."""
        if begins and isinstance(node, Within) and isinstance(_unwindowed(node), Next):
            tree = self._read(node.pattern, begins=True)
            self.windows.append(node)
            return tree
        if not isinstance(node, Next) or not (begins or self._is_open(node)):
            self.operands.append(node)
            return len(self.operands) - 1
        first = len(self.operands)
        left = self._read(node.first, begins=begins)
        middle = len(self.operands)
        equal, other = self._split(node)
        if self._is_first(node.second, other):
            right = self._read(node.second, begins=False)
        else:
            self.operands.append(node.second)
            right = middle
        self.nexts.append((first, middle - 1, equal))
        self.skips.extend((middle, skip) for skip in other)
        self.tests.extend(conjuncts(node.test))
        if conjuncts(node.skip) or conjuncts(node.test):
            self.absents.add(node.absent)
        return left, right

    def _is_open(self, node: Next) -> bool:
        """Whether a bracket that does not begin the chain can be taken apart."""
        return not conjuncts(node.test) and not self._split(node)[1]

    def _split(self, node: Next) -> tuple[list[Compare], list[Expression]]:
        equal: list[Compare] = []
        other: list[Expression] = []
        for part in conjuncts(node.skip):
            if self.by_key and node.absent is Absent.FALSE and _links(part, node):
                assert isinstance(part, Compare)
                equal.append(part)
            else:
                other.append(part)
        return equal, other

    def _is_first(self, second: Pattern, skips: list[Expression]) -> bool:
        """Whether skips look, on their right, at nothing behind the first operand there."""
        front = second
        while isinstance(front, Next) and self._is_open(front):
            front = front.first
        later = set(bound_variables(second)) - set(bound_variables(front))
        return not any(_names(skip) & later for skip in skips)

    def _keys(self) -> tuple[tuple[Attribute, ...], ...]:
        """The classes of equal attributes in which each operand, and each Next, has its part."""
        groups: list[set[Attribute]] = []
        for test in (test for *_, tests in self.nexts for test in tests):
            assert isinstance(test.left, Attribute)
            assert isinstance(test.right, Attribute)
            touched = [group for group in groups if test.left in group or test.right in group]
            groups = [group for group in groups if group not in touched]
            groups.append({test.left, test.right}.union(*touched))
        return tuple(key for key in map(self._key, groups) if key is not None)

    def _key(self, group: set[Attribute]) -> tuple[Attribute, ...] | None:
        of_operand = [
            [each for each in group if each.variable in _bound_once(operand)]
            for operand in self.operands
        ]
        if any(len(found) != 1 for found in of_operand) or len(group) != len(self.operands):
            return None
        if not all(any(test.left in group for test in tests) for *_, tests in self.nexts):
            return None
        return tuple(found[0] for found in of_operand)

    def _of(self, operand: int) -> set[str]:
        return set(bound_variables(self.operands[operand]))

    def _after(self, operand: int) -> set[str]:
        """The variables of an operand and of those behind it."""
        return {name for each in self.operands[operand:] for name in bound_variables(each)}

    def _last_of(self, names: set[str]) -> int:
        """The last operand that a condition looks at; at least the second, where a Next begins."""
        found = [at for at in range(len(self.operands)) if names & self._of(at)]
        return max(1, *found) if found else 1


def _names(expression: Expression) -> set[str]:
    return set(variables(expression))


def _unwindowed(node: Pattern) -> Pattern:
    """What is below windows between two ends; only these may change their bracket."""
    while isinstance(node, Within) and node.measure is Measure.END_TO_END:
        node = node.pattern
    return node


def _links(part: Expression, node: Next) -> bool:
    """Whether a condition is equality of an attribute on each side."""
    match part:
        case Compare("=", Attribute(left), Attribute(right)):
            first, second = bound_variables(node.first), bound_variables(node.second)
            return (left in first and right in second) or (right in first and left in second)
        case _:
            return False


def _length(node: Pattern) -> int | None:
    """How many stamps every match has; None if it depends on the match, or is not known."""
    match node:
        case Atom():
            return 2
        case Filter() | Within() | Except():
            return _length(node.pattern)
        case Timer():
            inner = _length(node.pattern)
            return None if inner is None else inner + 2
        case Next():
            first, second = _length(node.first), _length(node.second)
            return None if first is None or second is None else first + second
        case Union(patterns):
            lengths = {_length(each) for each in patterns}
            return lengths.pop() if len(lengths) == 1 else None
        case _:
            return None


def _bound_once(node: Pattern) -> frozenset[str]:
    """The variables that stand for exactly one event in every match."""
    match node:
        case Atom(_, variable):
            return frozenset((variable,))
        case Filter() | Within() | Except() | Timer():
            return _bound_once(node.pattern)
        case Next():
            return _bound_once(node.first) | _bound_once(node.second)
        case Union(patterns):
            return frozenset.intersection(*map(_bound_once, patterns))
        case _:
            return frozenset()
