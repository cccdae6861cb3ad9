"""Makes numba quicker in processes of our own, by replacing methods of it for the whole process.

Before numba looks into its cache it imports and registers all it knows of NumPy and of Python's
builtins. For a process that only runs kernels it compiled earlier, that is most of the waiting.

When it compiles, it spends a third of the time on one question: it resolves every `+` between two
integers by going through all overloads of `+` there are. The answer depends on the types alone, so
it is kept. A fifth of the rest goes into what nothing here asks for: which variables live where
each block begins, after every pass, and all imports of its own modules, before every function. The
machine code is the same.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from numba.core import analysis as _analysis
from numba.core import ir, types
from numba.core import postproc as _postproc
from numba.core import transforms as _transforms
from numba.core.caching import FunctionCache
from numba.core.cpu import CPUContext
from numba.core.runtime.nrt import rtsys

# Modules without type hints.
analysis: Any = _analysis
postproc: Any = _postproc
transforms: Any = _transforms


def start_quickly() -> None:
    """All of it."""
    load_cached_kernels_first()
    compile_quickly()


def load_cached_kernels_first() -> None:
    """From now on look for a compiled kernel first; prepare to compile only if there is none."""
    caches: Any = FunctionCache
    runtime: Any = rtsys
    prepare_and_load = caches.load_overload
    look_up = getattr(caches, "_load_overload", None)
    if look_up is None:  # another numba: it does without
        return

    def load_overload(cache: Any, signature: Any, target: Any) -> Any:
        runtime.initialize(target)  # machine code refers to numba's runtime
        found = look_up(cache, signature, target)
        return found if found is not None else prepare_and_load(cache, signature, target)

    caches.load_overload = load_overload


@cache
def compile_quickly() -> None:
    """From now on compile without work that is done again or for nobody."""
    _remember_operations()
    _compute_lifetimes_when_asked()
    _load_registries_once()


def _remember_operations() -> None:
    """Ask once what an operation on plain types means."""
    functions: Any = types.BaseFunction
    resolve = functions.get_call_type
    plain = (types.Number, types.Boolean, types.IntegerLiteral, types.BooleanLiteral, types.Array)

    def resolve_once(self: Any, context: Any, args: Any, kws: Any) -> Any:
        if kws or not all(isinstance(arg, plain) for arg in args):
            return resolve(self, context, args, kws)
        known = self.__dict__.setdefault("_resolved", {})
        signature = known.get((context, args))
        if signature is None:
            signature = known[context, args] = resolve(self, context, args, kws)
        return signature

    functions.get_call_type = resolve_once


def _compute_lifetimes_when_asked() -> None:
    """Only generators and Python's own mode ask which variables live where a block begins."""
    passes: Any = postproc.PostProcessor
    codes: Any = ir.FunctionIR
    run_all, look_up = passes.run, codes.get_block_entry_vars

    def run(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
        code = self.func_ir
        if code.is_generator:
            run_all(self, emit_dels, extend_lifetimes)
            return
        code.blocks = transforms.canonicalize_cfg(code.blocks)
        code.variable_lifetime = postproc.VariableLifetime(code.blocks)  # computed when read
        code.block_entry_vars = {}
        code.generator_info = None
        if emit_dels:
            self._insert_var_dels(extend_lifetimes=extend_lifetimes)

    def get_block_entry_vars(self: Any, block: Any) -> Any:
        if block not in self.block_entry_vars:
            of = postproc.VariableLifetime(self.blocks)
            found = analysis.compute_live_variables(
                of.cfg, self.blocks, of.usedefs.defmap, of.deadmaps.combined
            )
            self.block_entry_vars = {one: found[at] for at, one in self.blocks.items()}
        return look_up(self, block)

    passes.run = run
    codes.get_block_entry_vars = get_block_entry_vars


def _load_registries_once() -> None:
    """What numba imports there is there ever after; only what was registered since is taken in."""
    contexts: Any = CPUContext
    load = contexts.load_additional_registries

    def load_once(self: Any) -> None:
        # Copies of a context share its registries, and get this mark with everything else.
        if not hasattr(self, "_has_loaded_registries"):
            load(self)
            self._has_loaded_registries = True
        else:
            # Not even one of them may be left out: intrinsics are registered in the first.
            for registry in tuple(self._registries):
                self.install_registry(registry)

    contexts.load_additional_registries = load_once
