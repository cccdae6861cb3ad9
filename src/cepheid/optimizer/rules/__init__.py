"""One rewrite per file, named after its function; `optimizer.py` lists and orders them."""
