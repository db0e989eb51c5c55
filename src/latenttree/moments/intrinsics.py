"""Machine instructions that compiled kernels ask for by name."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic


def _popcount(_context: Any, _word: Any) -> Any:
    """Ones of a 64-bit word; loops over it become vector instructions."""

    def generate(_target: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), generate


def _prefetch(_context: Any, array: Any, _index: Any) -> Any:
    """Ask for the cache line of `array[index]` ahead of its use; changes nothing else."""

    def generate(target: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = target.make_array(signature.args[0])(target, builder, args[0]).data
        byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        place = builder.bitcast(builder.gep(data, [args[1]]), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        call = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        builder.call(call, [place, flag(0), flag(2), flag(1)])  # to read, second cache, data
        return target.get_dummy_value()

    return types.void(array, types.int64), generate


popcount: Any = intrinsic(_popcount)
prefetch: Any = intrinsic(_prefetch)
