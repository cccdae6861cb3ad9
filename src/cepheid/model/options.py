"""The options of a detection, checked once and shared by every host."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from typing import Any

from cepheid.model.diagnostics import did_you_mean
from cepheid.model.errors import OptionError
from cepheid.model.event_time import parse_duration
from cepheid.model.strategy import Strategy

Value = int | float | str | bool | None

_MOST_BUCKETS = 65_536


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """How a sequence is run; the defaults are what the optimiser chooses (SASE section 4).

    scan: "stacks" (Active Instance Stacks), "nfa" (the paper's Basic run-time stack) or "multi"
    (Multi-PAIS). partition: "all" equivalence attributes as one key, "none", or one attribute.
    predicates: tested in "construction" or in a "selection" on top. simple_in_scan: whether tests
    of single events keep them from the stacks, or are left to the selection. negation_in_scan:
    whether negations are decided with the stacks where that is possible, or on whole sequences.
    rules_off: names of the optimiser's rules that are left out. chains: whether plain chains of
    successors have a kernel of their own, or run as other patterns of NEXT do. placement: how a
    workload's queries that no key divides get their nodes: "greedy", "greedy-without-reuse" or
    "round-robin". cuts: whether parts of such queries may run apart from them. running_totals:
    whether a run of NEXT that only aggregates ask for is kept as totals instead of events: where
    that is possible (None), never (False), or always: what cannot be kept so is refused (True). In
    a workload, whose queries share events, only True keeps totals.
    """

    scan: str = "stacks"
    partition: str = "all"
    predicates: str = "construction"
    simple_in_scan: bool = True
    negation_in_scan: bool = True
    window_in_scan: bool = True
    window_in_construction: bool = True
    factorised: bool = True
    counting: bool = False
    rules_off: tuple[str, ...] = ()
    costs: str = "corrected"
    search: str = "pareto"
    placement: str = "greedy"
    cuts: bool = True
    chains: bool = True
    running_totals: bool | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """Guard rails; each has a named error (docs/semantics.md#limits)."""

    live_events: int = 50_000_000
    matches_per_table: int = 200_000_000


@dataclass(frozen=True, slots=True)
class Options:
    """Where the events' facts are, and how time and absence are read (docs/semantics.md#options).

    `types` tells the attributes of each type; the columns of type, time and id go without saying.
    `policy` says when time moves on: "bounded" by `lateness`, or "guaranteed" by `inputs`, each of
    which is in order, and waited for up to `input_timeout`.
    `cap` and `failures`: how many elements a run of NEXT's iterations may have, and whether its
    exceptions are reported. `statistics`: what the optimiser's costs are estimated from, a mapping
    from types to events per unit of time, an EventStatistics, or the path of its file.
    `partitions`: into how many tasks a Spark host divides the work (by
    default as Spark is set).
    """

    type: str = "type"
    time: str = "ts"
    start: str | None = None
    end: str | None = None
    id: str | None = None
    lateness: int | str | timedelta = 0
    policy: str = "bounded"
    inputs: Sequence[str] | None = None
    input_timeout: int | str | timedelta | None = None
    tick: int | str | timedelta | None = None
    types: Mapping[str, Any] | None = None
    params: Mapping[str, Value] = field(default_factory=dict)
    discrete: bool = True
    tie: str = "strict"
    cap: int | None = None
    failures: bool = False
    statistics: Any = None
    close_at_end: bool = True
    buckets: int | None = None
    late_output: bool = False
    partitions: int | None = None
    plan: PlanOptions = PlanOptions()
    limits: Limits = Limits()

    @property
    def tick_us(self) -> int | None:
        """The tick in microseconds, if one was given."""
        tick = parse_duration(self.tick, "tick")
        if tick is not None and tick <= 0:
            raise OptionError.of("bad-tick", f"tick={self.tick!r} is not a positive duration")
        return tick

    @property
    def end_column(self) -> str:
        """The column of an event's end: `end`, or `time` for instants."""
        return self.end or self.time

    def attributes_of(self, event_type: str) -> Sequence[str] | None:
        """The attributes `types=` declares for a type; None when nothing is declared."""
        if self.types is None or event_type not in self.types:
            return None
        return list(self.types[event_type])


def make_options(given: Mapping[str, Any]) -> Options:
    """Options from keyword arguments; a misspelt one is refused with the near name."""
    known = {f.name for f in fields(Options)}
    for name in given:
        if name not in known:
            raise OptionError.of(
                "unknown-option",
                f"there is no option `{name}`",
                help=did_you_mean(name, known) or f"options: {', '.join(sorted(known))}",
            )
    values = dict(given)
    for name, kind in (("plan", PlanOptions), ("limits", Limits)):
        if isinstance(values.get(name), Mapping):
            parts = {f.name for f in fields(kind)}
            wrong = set(values[name]) - parts
            if wrong:
                word = sorted(wrong)[0]
                raise OptionError.of(
                    "unknown-option",
                    f"there is no {name} option `{word}`",
                    help=did_you_mean(word, parts) or f"options: {', '.join(sorted(parts))}",
                )
            values[name] = kind(**values[name])
    values["plan"] = _with_rules_off(values.get("plan", PlanOptions()))
    options = Options(**values)
    _check(options)
    inputs = None if options.inputs is None else tuple(options.inputs)
    return replace(options, types=_with_shared_columns(options), inputs=inputs)


def _with_rules_off(plan: object) -> PlanOptions:
    """The names of rules as a tuple, whatever collection they came in."""
    if not isinstance(plan, PlanOptions):
        message = f"plan={plan!r} is no mapping of plan options"
        raise OptionError.of("bad-plan-option", message)
    given: object = plan.rules_off
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise OptionError.of(
            "bad-plan-option",
            f"plan option rules_off={given!r} is not a list of rules",
            help='write e.g. plan={"rules_off": ["order_guards"]}',
        )
    return replace(plan, rules_off=tuple(given))


def _with_shared_columns(options: Options) -> Mapping[str, Any] | None:
    """What `types=` declares, and for every type the columns that all events have."""
    if not isinstance(options.types, Mapping):
        return options.types  # what is no mapping is refused where the types are read
    times = (options.time,) if options.start is None else (options.start, options.end_column)
    shared = [options.type, *times, *(() if options.id is None else (options.id,))]

    def complete(given: Any) -> Any:
        if isinstance(given, Mapping):
            return {**dict.fromkeys(shared, "unknown"), **given}
        if isinstance(given, str) or not isinstance(given, Iterable):
            return given
        return list(dict.fromkeys([*given, *shared]))

    return {name: complete(given) for name, given in options.types.items()}


def _check(options: Options) -> None:
    if options.tie not in ("strict", "seqno"):
        raise OptionError.of(
            "bad-tie", f"tie={options.tie!r} is not known", help='write tie="strict" or tie="seqno"'
        )
    cap: object = options.cap
    if cap is not None and (isinstance(cap, bool) or not isinstance(cap, int) or cap < 1):
        raise OptionError.of(
            "bad-cap",
            f"cap={cap!r} is not a number of elements",
            help="give a whole number from 1, or leave it out",
        )
    partitions = options.partitions
    if partitions is not None and (isinstance(partitions, bool) or partitions < 1):
        raise OptionError.of(
            "bad-partitions",
            f"partitions={partitions!r} is not a number of tasks",
            help="give a whole number from 1, or leave it out",
        )
    if (options.start is None) != (options.end is None):
        raise OptionError.of(
            "half-interval", "start= and end= go together", help="give both columns, or time="
        )
    for name, allowed in (
        ("scan", ("stacks", "nfa", "multi")),
        ("predicates", ("construction", "selection")),
        ("costs", ("corrected", "paper")),
        ("search", ("pareto", "paper")),
        ("placement", tuple(Strategy)),
    ):
        value = getattr(options.plan, name)
        if value not in allowed:
            raise OptionError.of(
                "bad-plan-option",
                f"plan option {name}={value!r} is not known",
                help=f"one of {', '.join(allowed)}",
            )
    if options.plan.running_totals not in (None, True, False):
        raise OptionError.of(
            "bad-plan-option",
            f"plan option running_totals={options.plan.running_totals!r} is not known",
            help="one of True, False, None",
        )
    if options.buckets is not None and not 0 < options.buckets <= _MOST_BUCKETS:
        raise OptionError.of(
            "bad-buckets",
            f"buckets={options.buckets!r} is not a number from 1 to {_MOST_BUCKETS:,}",
        )
    lateness = options.lateness
    if isinstance(lateness, bool) or (isinstance(lateness, int) and lateness < 0):
        raise OptionError.of("bad-lateness", f"lateness={lateness!r} is negative")
    _check_policy(options)


def _check_policy(options: Options) -> None:
    if options.policy not in ("bounded", "guaranteed"):
        raise OptionError.of(
            "bad-policy",
            f"policy={options.policy!r} is not known",
            help='write policy="bounded" or policy="guaranteed"',
        )
    inputs: object = options.inputs
    if options.policy == "bounded":
        if inputs is not None or options.input_timeout is not None:
            raise OptionError.of(
                "bad-policy",
                "inputs= and input_timeout= are about guaranteed detection",
                help='add policy="guaranteed"',
            )
        return
    if options.lateness != 0:
        raise OptionError.of(
            "bad-policy",
            'lateness= has no meaning with policy="guaranteed": each input is in order',
            help="give input_timeout= to wait no longer than that for a silent input",
        )
    timeout: object = options.input_timeout
    if isinstance(timeout, bool) or (isinstance(timeout, int) and timeout < 0):
        raise OptionError.of("bad-policy", f"input_timeout={timeout!r} is no length of time")
    if inputs is None:
        return
    is_list = isinstance(inputs, Sequence) and not isinstance(inputs, str) and len(inputs) > 0
    if not is_list or not all(isinstance(name, str) for name in options.inputs or ()):
        raise OptionError.of(
            "bad-policy",
            f"inputs={inputs!r} is not a list of event types or sources",
            help='write e.g. inputs=["A", "B"]',
        )
