"""From algebra to a physical plan: which kernel, which key, which window, which tests where."""
