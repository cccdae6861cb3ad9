"""The figures of the papers, drawn anew: one folder each, and a table of what the papers claim."""

# The name to ask for, and the folder with its run.py, README and results.
FIGURES = {
    "fig8": "sase_fig08",
    "fig9": "sase_fig09",
    "fig10": "sase_fig10",
    "fig11": "sase_fig11",
    "fig12": "sase_fig12",
    "windows": "sase_windows",
    "negation": "sase_negation",
    "predicates": "sase_predicates",
    "next9": "next_fig09",
    "next10": "next_fig10",
    "next11": "next_fig11",
}
