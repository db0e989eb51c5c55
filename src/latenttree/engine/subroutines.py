"""A compiler for functions that only kernels call: no machine code of their own.

It uses parts of Numba that are not documented, and was tried with Numba 0.60 and 0.68. Where a
version of Numba lacks them, `kernels.py` does without.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering


class _LinkedCode(JITCodeLibrary):
    """Code of a subroutine, to be linked into kernels, which are optimised as a whole."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _SubroutineLowering(NativeLowering):
    """Lowering without an entry from Python."""

    _name = "subroutine_lowering"

    def run_pass(self, state: Any) -> bool:
        state.library = _LinkedCode(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_cpython_wrapper = state.flags.no_compile = True
        done = bool(super().run_pass(state))
        # Numba knows a function by its entry, a built-in function: here one that finds no arguments
        empty: dict[Any, Any] = {}
        entry = empty.__getitem__
        state.targetctx.insert_user_function(entry, state.cr.fndesc, [state.library])
        state.cr = state.cr._replace(cfunc=entry)
        return done


class SubroutineCompiler(CompilerBase):
    """Numba's compiler with another end."""

    def define_pipelines(self) -> list[Any]:
        """The steps of Numba, but the last."""
        steps = DefaultPassBuilder.define_nopython_pipeline(self.state)
        steps.passes = [
            (_SubroutineLowering if step is NativeLowering else step, text)
            for step, text in steps.passes
        ]
        steps.finalize()
        return [steps]
