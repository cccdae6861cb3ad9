"""The query generator of the SASE paper (section 5.1, Table 2)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from cepheid.generate.parameters import require
from cepheid.generate.streams import StreamParameters
from cepheid.generate.zipf import zipf_probabilities


@dataclass(frozen=True, slots=True)
class QueryParameters:
    """
    What the generated queries look like; the paper's symbols stand behind the fields.

    The length counts the events of a match; negations come on top of it. Negated components lie
    between two others unless `negated_ends` allows them first and last too.
    """

    queries: int = 1
    length: int = 3  # L
    type_theta: float = 0.0  # theta_2
    equivalence_tests: int = 1  # EP
    inequality_predicates: int = 0  # IP
    simple_predicates: int = 0  # SP
    negations: int = 0  # N
    window: int | None = 10_000  # W, in ticks; None leaves the query without WITHIN
    repeated_types: bool = False  # may one type stand in several components
    negated_ends: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse parameters that describe no query, whatever the stream."""
        counts = ("queries", "equivalence_tests", "inequality_predicates", "simple_predicates")
        for name in (*counts, "negations", "seed"):
            require(getattr(self, name) >= 0, f"`{name}` must not be negative")
        require(self.length >= 1, "`length` must be at least 1")
        require(self.type_theta >= 0, "`type_theta` must not be negative")
        require(self.window is None or self.window >= 1, "`window` must be at least 1 tick")
        if self.negations and self.negated_ends:
            require(self.window is not None, "`negated_ends` needs a window")
        if self.negations and not self.negated_ends:
            require(self.length >= 2, "a negation in the middle needs a `length` of 2 or more")


def generate_queries(parameters: QueryParameters, stream: StreamParameters) -> list[str]:
    """
    Queries in SASE's language over the types, attributes and domains of `stream`.

    A query depends on the seed and its place in the list alone, so asking for more of them
    leaves the first ones as they were. No query contradicts itself: equivalence tests, simple and
    inequality predicates use attributes of their own, as query Q3 of the paper does, and all
    inequalities over one attribute point the same way.

    >>> stream = StreamParameters(types=4, domain_sizes=50)
    >>> wanted = QueryParameters(length=2, negations=1, simple_predicates=1, window=100, seed=7)
    >>> print(generate_queries(wanted, stream)[0])
    EVENT SEQ(E... x1, !(E... n1), E... x2)
    WHERE [attr1] AND x....attr... ...
    WITHIN 100
    """
    attributes = _share_attributes(parameters, stream)
    return [
        _query(np.random.default_rng([parameters.seed, number]), parameters, stream, attributes)
        for number in range(parameters.queries)
    ]


@dataclass(frozen=True, slots=True)
class _AttributeShares:
    """Which attributes (counted from 0) serve which kind of predicate."""

    equivalence: tuple[int, ...]
    simple: tuple[int, ...]
    inequality: tuple[int, ...]


def _share_attributes(parameters: QueryParameters, stream: StreamParameters) -> _AttributeShares:
    equivalence = parameters.equivalence_tests
    require(
        equivalence <= stream.attributes,
        f"{equivalence} equivalence tests, but events have {stream.attributes} attributes",
    )
    spare = tuple(range(equivalence, stream.attributes))
    both = parameters.simple_predicates > 0 and parameters.inequality_predicates > 0
    simple = spare[0::2] if both else spare
    # A chain of strict inequalities through all events needs a value for each of them.
    wide_enough = [i for i in spare if stream.domains[i] >= parameters.length]
    ordered = tuple(i for i in wide_enough if not both or i not in simple)
    pairs = len(list(combinations(range(parameters.length), 2)))
    require(
        parameters.simple_predicates <= parameters.length * len(simple),
        f"{parameters.simple_predicates} simple predicates do not fit: {parameters.length} events "
        f"with {len(simple)} attributes left for them",
    )
    require(
        parameters.inequality_predicates <= pairs * len(ordered),
        f"{parameters.inequality_predicates} inequality predicates do not fit: {pairs} pairs of "
        f"events with {len(ordered)} attributes left for them",
    )
    return _AttributeShares(tuple(range(equivalence)), simple, ordered)


def _query(
    random: np.random.Generator,
    parameters: QueryParameters,
    stream: StreamParameters,
    attributes: _AttributeShares,
) -> str:
    lines = [f"EVENT SEQ({', '.join(_components(random, parameters, stream))})"]
    names = stream.attribute_names
    predicates = []
    if attributes.equivalence:
        predicates.append(f"[{', '.join(names[i] for i in attributes.equivalence)}]")
    predicates += _simple_predicates(random, parameters, stream, attributes.simple)
    predicates += _inequality_predicates(random, parameters, stream, attributes.inequality)
    if predicates:
        lines.append(f"WHERE {' AND '.join(predicates)}")
    if parameters.window is not None:
        lines.append(f"WITHIN {parameters.window}")
    return "\n".join(lines)


def _components(
    random: np.random.Generator, parameters: QueryParameters, stream: StreamParameters
) -> list[str]:
    count = parameters.length + parameters.negations
    require(
        parameters.repeated_types or count <= stream.types,
        f"{count} components of different types, but the stream has {stream.types} types",
    )
    types = random.choice(
        stream.type_names,
        size=count,
        replace=parameters.repeated_types,
        p=zipf_probabilities(stream.types, parameters.type_theta),
    )
    first, end = (0, parameters.length + 1) if parameters.negated_ends else (1, parameters.length)
    # A negation at place k stands before the k-th event of the match, counted from 0.
    places = np.sort(random.integers(first, end, parameters.negations)).tolist()
    positive = [f"{types[i]} x{i + 1}" for i in range(parameters.length)]
    components = []
    for place in range(parameters.length + 1):
        for number, negation_place in enumerate(places):
            if negation_place == place:
                components.append(f"!({types[parameters.length + number]} n{number + 1})")
        components += positive[place : place + 1]
    return components


def _simple_predicates(
    random: np.random.Generator,
    parameters: QueryParameters,
    stream: StreamParameters,
    attributes: tuple[int, ...],
) -> list[str]:
    # Each attribute of each event is tested once at most, so no two tests contradict each other.
    chosen = random.permutation(parameters.length * len(attributes))[: parameters.simple_predicates]
    predicates = []
    for choice in sorted(chosen.tolist()):
        event, position = divmod(choice, len(attributes))
        attribute = attributes[position]
        size = stream.domains[attribute]
        operator = str(random.choice(["=", "<", ">"] if size >= 2 else ["="]))
        # `< 1` and `> V` would never hold.
        lowest = 2 if operator == "<" else 1
        highest = size - 1 if operator == ">" else size
        constant = random.integers(lowest, highest, endpoint=True)
        predicates.append(f"x{event + 1}.{stream.attribute_names[attribute]} {operator} {constant}")
    return predicates


def _inequality_predicates(
    random: np.random.Generator,
    parameters: QueryParameters,
    stream: StreamParameters,
    attributes: tuple[int, ...],
) -> list[str]:
    direction = {i: str(random.choice(["<", ">"])) for i in attributes}
    possible = [
        (first, second, attribute)
        for first, second in combinations(range(1, parameters.length + 1), 2)
        for attribute in attributes
    ]
    chosen = random.permutation(len(possible))[: parameters.inequality_predicates]
    predicates = []
    for first, second, attribute in (possible[i] for i in sorted(chosen.tolist())):
        name = stream.attribute_names[attribute]
        predicates.append(f"x{first}.{name} {direction[attribute]} x{second}.{name}")
    return predicates
