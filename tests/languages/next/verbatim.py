"""The queries of the NEXT paper, as printed there (SPEC A1.2)."""

SMALL_THEN_LARGE = """SELECT * FROM ( t S1 ; t S2 ; t L )
WHERE FILTER(S1.acc = S2.acc), FILTER(S2.acc = L.acc),
      S1.amount < 100 AND S2.amount < 100 AND
      L.amount > 250 AND (S1, L) OCCURS WITHIN 12 hours"""
THREE_LARGE = """SELECT * FROM ( t T1; t T2; t T3 )
WHERE FILTER(T1.acc = T2.acc), FILTER(T2.acc = T3.acc),
      T1.amount > 1000 AND T2.amount > 1000
      AND T3.amount > 1000"""
OTHER_CURRENCY = """SELECT * FROM t T1+; t T2
WHERE ALL(T1.currency) <> T2.currency"""

QUERIES = {
    "small then large": SMALL_THEN_LARGE,
    "three large": THREE_LARGE,
    "other currency": OTHER_CURRENCY,
}
