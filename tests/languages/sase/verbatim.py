"""The queries of the SASE paper, as printed there (SPEC A2.2)."""

FILTER = """EVENT  SHELF-READING
        WHERE category = 'food' ∧ manufacturer_id = '1'"""
SHOPLIFTING = """EVENT SEQ(SHELF-READING x, !(COUNTER-READING y),
EXIT-READING z)
WHERE x.id = y.id ∧ x.id = z.id /* or equivalently, [id] */
WITHIN 12 hours"""
MISPLACEMENT = """EVENT SEQ(SHELF-READING x, SHELF-READING y,
! (ANY(COUNTER-READING, SHELF-READING) z))
WHERE [id] ∧ x.shelf_id ≠ y.shelf_id ∧ x.shelf_id = z.shelf_id
WITHIN 1 hour"""
OVERDOSE = """EVENT SEQ(MEDICINE-TAKEN x, MEDICINE-TAKEN y)
WHERE [name='John'] ∧ [medicine='Antibiotics'] ∧
(x.amount + y.amount) > 1000
WITHIN 4 hours"""
PLAN_EXAMPLE = """EVENT SEQ(A x1, B x2, ! (C x3), D x4)
      WHERE [attr1, attr2] ∧ x1.attr3 = '1' ∧ x1.attr4 < x4.attr4
      WITHIN T"""
EXPERIMENT = "EVENT SEQ(E1, E2, E3) WHERE [attr1] WITHIN 10000"

QUERIES = {
    "filter": FILTER,
    "shoplifting": SHOPLIFTING,
    "misplacement": MISPLACEMENT,
    "overdose": OVERDOSE,
    "plan example": PLAN_EXAMPLE,
    "experiment": EXPERIMENT,
}


def sequence_of(length: int, attributes: str, window: str) -> str:
    """The paper's template `EVENT SEQ(E1, E2, ..., EL) WHERE [attr1 (, attr2)?] WITHIN W`."""
    types = ", ".join(f"E{number}" for number in range(1, length + 1))
    return f"EVENT SEQ({types}) WHERE [{attributes}] WITHIN {window}"
