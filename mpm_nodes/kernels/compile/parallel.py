"""Loops over blocks shared among threads, compiled once.

numba turns the body of a `prange` into a function that LLVM optimises and translates four times (on its own, in two wrappers and
in the caller), and analyses the arrays in it besides: most of the time that a large kernel takes to compile. Here the body is a
function of its own, `body(k, *arguments)`, which the caller takes in once; numba's thread pool runs it.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.typed_passes import _reload_parfors
from numba.extending import intrinsic

from mpm_nodes.kernels.compile.lend import unowned

_INDEX, _BYTES = ir.IntType(64), ir.IntType(8).as_pointer()
_TASK = ir.FunctionType(ir.VoidType(), [_BYTES.as_pointer(), _INDEX.as_pointer(), _INDEX.as_pointer(), _BYTES])
"""What the thread pool calls: (arguments, dimensions, steps, data)."""
_RUN = ir.FunctionType(ir.VoidType(), [_BYTES, *_TASK.args, _INDEX, _INDEX, ir.IntType(32)])

FEW = 16
"""Calls of a fraction of a microsecond, as over the 64 nodes of a block, that are sooner made than other threads are woken."""


@intrinsic
def parallel_for(context, body, count, arguments, few=1):
    """Call body(k, *arguments) for k = 0 .. count - 1, each thread for a run of k.

    To wake other threads takes one microsecond where cores wait for work and sixty where other programs run on them.

    Args:
        body: A compiled function that returns nothing; what different k write must not overlap.
        count: Number of calls, which are then shared evenly; or where shares begin and end, int64, ascending: share i is
            k = count[i] .. count[i + 1] - 1. Threads take even runs of the shares, so that there should be one for each.
        arguments: A tuple; arrays in it are lent, their references are not counted.
        few: So many calls and fewer are made by the calling thread alone; `FEW` where a call takes a fraction of a microsecond.
    """
    shares = isinstance(count, types.Array) and count.dtype == types.int64 and count.ndim == 1 and count.layout == "C"
    counted = shares or isinstance(count, types.Integer)
    if not (isinstance(body, types.Callable) and counted and isinstance(arguments, types.BaseTuple)):
        raise TypingError(f"parallel_for(function, integer or shares, tuple) needed, got {body}, {count}, {arguments}")
    few = types.int64 if few == 1 else few
    if not isinstance(few, types.Integer):
        raise TypingError(f"parallel_for: few is an integer, got {few}")
    called = body.get_call_type(context, (types.int64, *arguments.types), {})
    if called is None or called.return_type != types.none:
        raise TypingError(f"{body} cannot be called with an index and {arguments}, or returns something")

    def generate(context, builder, signature, args):
        _reload_parfors()  # starts the thread pool, here and in processes that load the caller from the disk cache
        context.active_code_library._reload_init.add(_reload_parfors)
        if shares:
            bounds = context.make_array(signature.args[1])(context, builder, value=args[1])
            number, ends = builder.sub(builder.extract_value(bounds.shape, 0), _INDEX(1)), bounds.data
            calls = builder.sub(*(builder.load(builder.gep(ends, [place])) for place in (number, _INDEX(0))))
        else:
            calls = number = context.cast(builder, args[1], signature.args[1], types.int64)
            ends = cgutils.get_null_value(_INDEX.as_pointer())
        lent = unowned(context, builder, arguments, args[2])
        allowed = builder.call(cgutils.get_or_insert_function(builder.module, ir.FunctionType(_INDEX, []), "get_num_threads"), [])
        alone = context.cast(builder, args[3], signature.args[3], types.int64)
        threads = builder.select(builder.icmp_signed("<=", calls, alone), _INDEX(1), allowed)
        work = cgutils.alloca_once_value(builder, cgutils.pack_struct(builder, [number, threads, lent, ends]))
        data = builder.bitcast(work, _BYTES)
        task = _task(context, builder.module, body, called, work.type, shares)
        # the pool adds k steps to an argument: counted from the data's own address that is k itself
        addresses = cgutils.alloca_once_value(builder, data)
        dimensions, steps = cgutils.alloca_once_value(builder, threads), cgutils.alloca_once_value(builder, _INDEX(1))
        run = cgutils.get_or_insert_function(builder.module, _RUN, "numba_parallel_for")
        builder.call(
            run,
            [
                builder.bitcast(task, _BYTES),
                addresses,
                dimensions,
                steps,
                data,
                _INDEX(0),
                _INDEX(1),
                builder.trunc(threads, ir.IntType(32)),
            ],
        )
        # the pool of OpenMP takes the threads of one loop for those of all that follow
        allow = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), [ir.IntType(32)]), "set_num_threads")
        builder.call(allow, [builder.trunc(allowed, ir.IntType(32))])
        return context.get_dummy_value()

    return types.void(body, count, arguments, few), generate


def _task(context: Any, module: ir.Module, body: Any, called: Any, work: ir.Type, shares: bool) -> ir.Function:
    """Return a function that runs the body over the shares that the thread pool gives it."""
    compiled = body.dispatcher.get_compile_result(called)
    context.active_code_library.add_linking_library(compiled.library)
    function = context.declare_function(module, compiled.fndesc)
    task = ir.Function(module, _TASK, name=module.get_unique_name("parallel_for." + compiled.fndesc.mangled_name))
    task.linkage = "internal"
    builder = ir.IRBuilder(task.append_basic_block())
    addresses, dimensions, _, data = task.args
    number, threads, lent, ends = cgutils.unpack_tuple(builder, builder.load(builder.bitcast(data, work)), 4)
    arguments = cgutils.unpack_tuple(builder, lent, len(called.args) - 1)
    first = builder.sub(builder.ptrtoint(builder.load(addresses), _INDEX), builder.ptrtoint(data, _INDEX))
    begin = builder.sdiv(builder.mul(first, number), threads)
    end = builder.sdiv(builder.mul(builder.add(first, builder.load(dimensions)), number), threads)
    if shares:
        begin, end = (builder.load(builder.gep(ends, [place])) for place in (begin, end))
    with cgutils.for_range_slice(builder, begin, end, _INDEX(1), _INDEX) as (k, _):
        context.call_conv.call_function(builder, function, called.return_type, called.args, [k, *arguments])
    builder.ret_void()
    return task
