"""docs/numba.md: what is taken from inside numba is on the page, and still needed.

A part whose test fails with a newer numba is broken there, or can go.
"""

from __future__ import annotations

import ast
import inspect
import json
import operator
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import llvmlite.binding as llvm
import numba
import pytest
from numba import float64
from numba.core import utils
from numba.core.registry import cpu_target
from numba.core.target_extension import CPU
from numba.core.types import Function

import mpm_nodes
from mpm_nodes.kernels.compile.machine_code import LinkedLibrary, OnDemandCodegen
from mpm_nodes.kernels.compile.operators import Remembered
from mpm_nodes.kernels.lanes import arithmetic, types

PACKAGE = Path(mpm_nodes.__file__).parent
PAGE = (PACKAGE.parent / "docs" / "numba.md").read_text()
DOCUMENTED = (
    "numba",
    "numba.core.cgutils",
    "numba.core.errors",
    "numba.core.event",
    "numba.core.types",
    "numba.extending",
)
"""What numba's documentation has of its modules."""
OF_OTHERS = {"_asdict", "_exit", "_getvalue", "_make", "_replace"}
"""Names with an underscore that Python documents, or numba."""


# ---------------------------------------------------------------- the page
def private_names(source: str) -> set[str]:
    """Return what a module takes from inside numba: names that it imports, and attributes with an underscore not its own."""
    tree, modules, names, own = ast.parse(source), set(), set(), set(OF_OTHERS)
    for item in ast.walk(tree):
        if isinstance(item, ast.Import):
            modules |= {alias.name for alias in item.names}
        elif isinstance(item, ast.ImportFrom) and (item.module or "").startswith("numba"):
            modules.add(item.module)
            names |= {alias.name for alias in item.names if not {item.module, f"{item.module}.{alias.name}"} & {*DOCUMENTED}}
        elif isinstance(item, ast.ClassDef):
            own |= {each.id for each in ast.walk(item) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
        elif isinstance(item, ast.FunctionDef):
            own.add(item.name)
            own |= {each.attr for each in stored(item)} if item.name == "__init__" else set()
    if any(module.startswith("numba") for module in modules):
        attributes = {item.attr for item in ast.walk(tree) if isinstance(item, ast.Attribute)}
        names |= {name for name in attributes - own if re.match("_[^_]", name)}
    return names


def stored(function: ast.FunctionDef) -> list[ast.Attribute]:
    """Return the attributes that a function sets."""
    return [item for item in ast.walk(function) if isinstance(item, ast.Attribute) and isinstance(item.ctx, ast.Store)]


def test_private_names_are_found():
    """Of numba's, wherever the import stands; neither documented ones nor a class's own."""
    source = """
from numba.core import types, caching
from numba.extending import intrinsic
class Mine:
    _state = 0
    def __init__(self): self._own = 1
    def _call(self):
        from numba.core.registry import cpu_target
        return self._own + self._state + self._call() + self._theirs
"""
    assert private_names(source) == {"caching", "cpu_target", "_theirs"}
    assert private_names("import numpy\nx = y._field") == set()


def test_the_page_names_all_that_is_private():
    """A new use of numba's inside comes with a line on the page that says why; a line whose use is gone goes too."""
    sources = (path.read_text() for path in PACKAGE.rglob("*.py"))
    used = set().union(*(private_names(source) for source in sources if "numba" in source))
    rows = [line for line in PAGE.splitlines() if line.startswith("| `")]
    told = {name for row in rows for name in re.findall(r"`([\w.]+)`", row.split("|")[1])}
    assert told == used


def test_the_page_was_read_again_for_this_numba():
    """With another minor version its functions are looked at again, and the page says so."""
    minor = ".".join(numba.__version__.split(".")[:2])
    assert re.search(rf"read in\s+numba {re.escape(minor)}\.\d+", PAGE)


def test_the_tests_on_the_page_exist():
    """Each row names one."""
    rows = [line.split("|")[-2] for line in PAGE.splitlines() if line.startswith("| `")]
    named = [re.findall(r"`(?:(\w+)::)?(test_\w+)`", row) for row in rows]
    assert rows and all(named)
    for file, test in (each for row in named for each in row):
        assert f"def {test}(" in (Path(__file__).parent / f"{file or 'test_numba'}.py").read_text(), test


# ---------------------------------------------------------------- what numba does by itself
HELPER = """
from numba import njit
@njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def part(x):
    return 2.0 * x
"""
UPSTREAM = """
import gc, json, sys
from pathlib import Path
import llvmlite.binding as llvm
from numba import config, njit, types
from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache, _Cache
from numba.core.compiler import CompileResult
from numba.core.registry import cpu_target
from numba.core.typed_passes import _reload_parfors
from numba.extending import overload
from helper import part

facts, collects, ran = {}, [], []

def asked(): ...

@overload(asked)
def _asked():
    collects.append(gc.isenabled())
    return lambda: 1.0

@njit
def call(x):
    return part(x) + asked()

facts["cache"] = [type(call._cache) is NullCache, sorted(_Cache.__abstractmethods__)]
call(1.0)
result, called = call.overloads[(types.float64,)], part.overloads[(types.float64,)]
engine = result.library._codegen._engine
facts["translates"] = engine.is_symbol_defined(called.fndesc.llvm_func_name)
facts["links"] = called.library in result.library._linking_libraries
facts["address of no environment"] = engine.get_global_value_address("_ZN08NumbaEnvnobody")
facts["collects"] = collects
wrapped = [f.name for each in result.library._linking_libraries for f in each.get_defined_functions()]
facts["wraps"] = any(name.startswith("cfunc.") and "asked" in name for name in wrapped)

*kept, _, environments = result._reduce()
again = CompileResult._rebuild(cpu_target.target_context, *kept, [lambda: ran.append(1)], environments)
facts["reloads"] = [len(ran), len(again.library._reload_init)]

def stamp():
    cache = FunctionCache(call.py_func)
    return [cache._impl.locator.get_source_stamp(), repr(cache._index_key((types.float64,), result.codegen))]

before = stamp()
Path("helper.py").write_text(Path("helper.py").read_text().replace("2.0", "3.0"))
facts["sees an edit"] = stamp() != before
config.OPT = 1
facts["sees a setting"] = stamp() != before

one, other = IndexDataCacheFile(".", "f", 0), IndexDataCacheFile(".", "f", 0)
other._load_index = dict  # it has looked before the first has stored anything
one.save("first", 1)
name = one._load_index()["first"]
other.save("second", 2)
facts["shares a file"] = name == one._load_index()["second"]

_reload_parfors()
facts["symbols"] = [name for name in ("numba_parallel_for", "get_num_threads", "set_num_threads") if llvm.address_of_symbol(name)]
print(json.dumps(facts))
"""


@pytest.fixture(scope="module")
def upstream(tmp_path_factory):
    """What numba does in a process without this package."""
    folder = tmp_path_factory.mktemp("upstream")
    (folder / "helper.py").write_text(HELPER)
    (folder / "upstream.py").write_text(UPSTREAM)
    done = subprocess.run([sys.executable, "upstream.py"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_numba_translates_what_only_kernels_call(upstream):
    """Machine code for a function without a wrapper, which nobody can call but its callers, who have their own copy."""
    assert upstream["translates"]


def test_numba_links_all_that_a_function_calls(upstream):
    """However large: there is no way to call by address what was compiled on its own."""
    assert upstream["links"]


def test_numba_writes_environments_where_no_machine_code_is(upstream):
    """`set_env` asks for an address and writes there; it is 0 for a function that has not been translated."""
    assert upstream["address of no environment"] == 0


def test_numba_collects_garbage_while_it_compiles(upstream):
    """As long as no listener keeps it from that."""
    assert upstream["collects"] and all(upstream["collects"])


def test_numba_forgets_what_a_loaded_library_needs(upstream):
    """It starts threads for what it loads, and its callers, when they are stored, do not know that they need them."""
    assert upstream["reloads"] == [1, 0]


def test_numba_keeps_machine_code_after_an_edit_in_another_file(upstream):
    """Neither stamp nor key of a function depends on the file of what it calls."""
    assert not upstream["sees an edit"]


def test_numba_keeps_machine_code_of_other_settings(upstream):
    """NUMBA_OPT and its like are not part of its key."""
    assert not upstream["sees a setting"]


def test_numba_gives_two_signatures_one_file(upstream):
    """When two processes store them at once."""
    assert upstream["shares a file"]


def test_a_dispatcher_asks_its_cache(upstream):
    """It has one from the beginning, with these methods and no others."""
    methods = ["cache_path", "disable", "enable", "flush", "load_overload", "save_overload"]
    assert upstream["cache"] == [True, methods]


def test_numba_makes_wrappers_for_c_of_overloads(upstream):
    """Every caller of one compiles it again."""
    assert upstream["wraps"]


def test_the_thread_pool_has_its_names(upstream):
    """Known to LLVM once `_reload_parfors` has run."""
    assert upstream["symbols"] == ["numba_parallel_for", "get_num_threads", "set_num_threads"]


# ---------------------------------------------------------------- with this package
def test_one_object_of_numba_has_another_class():
    """That is all that is put into numba's own objects for the whole process; a user's cached functions stay where they were."""
    assert numba.config.CACHE_DIR == os.environ.get("NUMBA_CACHE_DIR", "")
    codegen = cpu_target.target_context.codegen()
    assert type(codegen) is OnDemandCodegen and not {"set_env", "_library_class"} & vars(codegen).keys()


OVERRIDDEN = {
    OnDemandCodegen: {"_library_class", "set_env"},
    LinkedLibrary: {
        "_finalize_final_module",
        "add_linking_library",
        "get_pointer_to_function",
        "serialize_using_object_code",
    },
}


@pytest.mark.parametrize("ours", OVERRIDDEN, ids=lambda ours: ours.__name__)
def test_methods_that_numba_calls_have_its_parameters(ours):
    """A method of numba's that has another name now would never be called here, and nothing else would say so."""
    (base,) = ours.__bases__
    known = {name: getattr(base, name) for name in vars(ours) if hasattr(base, name) and not name.startswith("__")}
    known = {name: theirs for name, theirs in known.items() if name != "_abc_impl"}
    assert known.keys() == OVERRIDDEN[ours]
    for name, theirs in known.items():
        if inspect.isfunction(theirs):
            assert [*inspect.signature(theirs).parameters] == [*inspect.signature(vars(ours)[name]).parameters], name


@pytest.mark.parametrize("function", [operator.add, operator.lt, arithmetic.select], ids=["add", "lt", "select"])
def test_templates_of_ours_are_asked_first(function):
    """Those for one target come before those for any, of which operators have dozens: what is remembered, then those for lanes."""
    cpu_target.typing_context.refresh()
    templates = cpu_target.typing_context.resolve_value_type(function).templates
    asked = utils.order_by_target_specificity(CPU, templates, fnkey=function)
    remembered = [each for each in asked if issubclass(each, Remembered)]
    first = asked[len(remembered)]
    assert asked[: len(remembered)] == remembered and len(remembered) == (function is not arithmetic.select)
    assert first.__module__ == arithmetic.__name__ and first.metadata["target"] == "cpu"


def test_numba_asks_many_templates_for_a_sum():
    """Those of both orders of what a call prefers, for every call: the types of sums are remembered for that."""
    cpu_target.typing_context.refresh()
    templates = cpu_target.typing_context.resolve_value_type(operator.add).templates
    asked = []

    def noting(template):
        apply = template.apply
        return type(template.__name__, (template,), {"apply": lambda self, *given: asked.append(template) or apply(self, *given)})

    sums = Function(tuple(noting(each) for each in templates if not issubclass(each, Remembered)))
    for _ in range(2):
        assert sums.get_call_type(cpu_target.typing_context, (float64, float64), {}) == float64(float64, float64)
    assert len(asked) > 20


@pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="names of x86-64's features")
def test_llvm_says_what_the_processor_has():
    """Features alone do not say which registers LLVM chooses: some processors with AVX-512 are better off with 256 bits."""
    features = llvm.get_host_cpu_features()
    assert features["avx512f"] or not types.whole_registers()
    assert types.fused() == features["fma"]
