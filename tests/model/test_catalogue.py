"""What the catalogue knows, from the option `types`, from Arrow schemas, and from nothing."""

from __future__ import annotations

import pyarrow as pa
import pytest

from cepheid.model.catalogue import (
    AttributeType,
    Catalogue,
    EventType,
    Sink,
    Source,
    attribute_type,
)
from cepheid.model.errors import OptionError

INT, FLOAT, STRING = AttributeType.INT, AttributeType.FLOAT, AttributeType.STRING
UNKNOWN = AttributeType.UNKNOWN


def test_nothing_is_known_of_an_empty_catalogue() -> None:
    catalogue = Catalogue.from_option(None)
    assert catalogue == Catalogue()
    assert catalogue.knows_type("A")
    assert catalogue.knows_attribute("a")
    assert catalogue.attribute("A", "a") is UNKNOWN
    assert catalogue.attributes("A") is None


def test_declared_types_have_their_attributes_only() -> None:
    catalogue = Catalogue.from_option({"A": ["id"], "B": {"id": "Integer", "price": "double"}})
    assert catalogue.attribute("A", "id") is UNKNOWN
    assert catalogue.attribute("B", "id") is INT
    assert catalogue.attribute("A", "price") is None
    assert catalogue.attribute("A", "ID") is None, "names are case-sensitive"
    assert catalogue.attribute("C", "anything") is UNKNOWN
    assert catalogue.knows_attribute("price")
    assert not catalogue.knows_attribute("prize")
    assert catalogue.knows_type("C")


def test_a_closed_catalogue_has_no_other_types() -> None:
    catalogue = Catalogue.from_option({"Shelf": ["id"]}, closed=True)
    assert not catalogue.knows_type("shelf")
    assert catalogue.nearest_type("shelf") == "did you mean `Shelf`?"


@pytest.mark.parametrize(
    "types",
    [
        ["A"],
        "A",
        {1: ["id"]},
        {"A": "id"},
        {"A": 3},
        {"A": [1]},
        {"A": {"id": "integr"}},
    ],
)
def test_an_option_that_is_none_is_refused(types: object) -> None:
    with pytest.raises(OptionError) as refused:
        Catalogue.from_option(types)
    assert refused.value.code == "bad-types-option"
    assert refused.value.help


def test_a_misspelt_type_is_corrected() -> None:
    with pytest.raises(OptionError, match=r"did you mean `integer`\?"):
        Catalogue.from_option({"A": {"id": "integr"}})


def test_one_wide_table() -> None:
    schema = pa.schema([("type", pa.string()), ("ts", pa.int64()), ("price", pa.float32())])
    catalogue = Catalogue.from_arrow(schema)
    assert catalogue.attribute("A", "price") is FLOAT
    assert catalogue.attribute("A", "prize") is None
    assert not catalogue.knows_attribute("prize")
    assert catalogue.knows_type("A")


def test_a_table_for_each_type() -> None:
    schemas = {"A": pa.schema([("id", pa.int64())]), "B": pa.schema([("name", pa.string())])}
    catalogue = Catalogue.from_arrow(schemas)
    assert catalogue.attribute("A", "id") is INT
    assert catalogue.attribute("A", "name") is None
    assert catalogue.attribute("B", "name") is STRING


def test_a_schema_tells_the_types_of_declared_attributes() -> None:
    declared = Catalogue.from_option({"A": ["id"], "B": {"id": "string"}})
    catalogue = declared.with_schema(pa.schema([("id", pa.int32()), ("x", pa.bool_())]))
    assert catalogue.attribute("A", "id") is INT
    assert catalogue.attribute("B", "id") is STRING, "what the user says counts"
    assert catalogue.attribute("A", "x") is None
    assert catalogue.attribute("C", "x") is AttributeType.BOOL


def test_every_event_has_the_shared_attributes() -> None:
    schema = pa.schema([("ts", pa.timestamp("us")), ("id", pa.int64())])
    catalogue = Catalogue.from_option({"A": ["id"]}).with_schema(schema).with_shared(["ts", "row"])
    assert catalogue.attribute("A", "ts") is AttributeType.TIMESTAMP
    assert catalogue.attribute("A", "row") is UNKNOWN
    assert catalogue.attribute("A", "id") is INT
    assert catalogue.knows_attribute("row")


def test_a_type_more() -> None:
    catalogue = Catalogue().with_type(EventType("T", {"a": INT, "b": INT}))
    merged = catalogue.with_type(EventType("T", {"b": FLOAT, "c": STRING}))
    assert merged.attributes("T") == {"a": INT, "b": FLOAT, "c": STRING}
    assert catalogue.attributes("T") == {"a": INT, "b": INT}, "the first one has not changed"


@pytest.mark.parametrize(
    ("arrow", "expected"),
    [
        (pa.bool_(), AttributeType.BOOL),
        (pa.uint8(), INT),
        (pa.float64(), FLOAT),
        (pa.decimal128(10, 2), FLOAT),
        (pa.large_string(), STRING),
        (pa.dictionary(pa.int8(), pa.string()), STRING),
        (pa.timestamp("ns", "UTC"), AttributeType.TIMESTAMP),
        (pa.date32(), AttributeType.TIMESTAMP),
        (pa.list_(pa.int64()), UNKNOWN),
        (pa.binary(), UNKNOWN),
        (pa.null(), UNKNOWN),
    ],
)
def test_types_of_columns(arrow: pa.DataType, expected: AttributeType) -> None:
    assert attribute_type(arrow) is expected


def test_a_catalogue_is_a_value() -> None:
    first = Catalogue.from_option({"A": {"id": "int"}}).with_shared(["ts"])
    second = Catalogue.from_option({"A": {"id": "long"}}).with_shared(["ts"])
    assert first == second
    assert hash(first) == hash(second)


def test_sources_and_sinks_are_part_of_the_value() -> None:
    known = Catalogue().with_source(Source("t"), {"acc": AttributeType.STRING})
    assert known.with_sink(Sink("q")) != known
    assert hash(known.with_sink(Sink("q"))) == hash(known.with_sink(Sink("q")))
    assert known.closed
    assert not Catalogue().with_sink(Sink("q")).closed


def test_the_types_of_a_source_and_of_an_option_add_up() -> None:
    declared = Catalogue.from_option({"t": {"ts": "unknown"}})
    known = declared.with_source(Source("t"), {"acc": AttributeType.STRING})
    assert known.attributes("t") == {
        "acc": AttributeType.STRING,
        "ts": AttributeType.UNKNOWN,
    }
