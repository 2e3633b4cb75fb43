"""Every compiled function is what its decorator says: those that only kernels call have no wrapper for Python."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
IN_KERNELS = {"compiled", "part", "inline", "spliced"}


class Uses(ast.NodeVisitor):
    """Names that Python code uses, and the functions decorated with `compiled`."""

    def __init__(self, modules):
        self.from_python, self.compiled = set(), {}
        for path in modules:
            self.path, self.in_kernel = path, False
            self.visit(ast.parse(path.read_text(encoding="utf-8")))

    def visit_FunctionDef(self, node):
        calls = (mark.func if isinstance(mark, ast.Call) else mark for mark in node.decorator_list)
        marks = {mark.id for mark in calls if isinstance(mark, ast.Name)}
        if "compiled" in marks:
            self.compiled[node.name] = self.path
        outer, self.in_kernel = self.in_kernel, self.in_kernel or bool(marks & IN_KERNELS)
        for statement in node.body:
            self.visit(statement)
        self.in_kernel = outer

    def visit_Name(self, node):
        if not self.in_kernel:
            self.from_python.add(node.id)

    def visit_Attribute(self, node):
        if not self.in_kernel:
            self.from_python.add(node.attr)
        self.generic_visit(node)


def test_a_function_that_only_kernels_call_is_a_part():
    """A wrapper for Python, and machine code that nobody runs, would cost as much as the function itself."""
    folders = ("mpm_nodes", "usd_io", "samples", "tests", "benchmarks")
    uses = Uses(path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))
    of_package = {name: path for name, path in uses.compiled.items() if (ROOT / "mpm_nodes") in path.parents}
    assert len(of_package) > 100
    assert {name: str(path) for name, path in of_package.items() if name not in uses.from_python} == {}


# ---------------------------------------------------------------- compiled for literals
def _literal(argument):
    """Return what numba gives an argument a type of its own for: an integer or text; None for all else.

    True and False have types of their own too, and are left: what nobody asked for is then compiled out of a part.
    """
    value = argument.operand if isinstance(argument, ast.UnaryOp) else argument
    return ast.unparse(argument) if isinstance(value, ast.Constant) and type(value.value) in (int, str) else None


def literal_and_not(sources):
    """Return the parts that kernels call with a literal and with another or none, and the places of those arguments."""
    parts, calls = set(), {}
    for source in sources:
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef) and any(isinstance(m, ast.Name) and m.id == "part" for m in node.decorator_list):
                parts.add(node.name)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
                name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
                for place, argument in enumerate(node.args):
                    calls.setdefault((name, place), set()).add(_literal(argument))
    return sorted((name, place) for (name, place), kinds in calls.items() if name in parts and len(kinds) > 1)


def test_no_part_is_compiled_for_a_literal_besides():
    """A part that is given 1 here and a variable there would be compiled twice, optimised and translated: `np.int64(1)`."""
    assert literal_and_not(["@part\ndef f(x, n): pass\nf(x, 1)\nf(x, n)\n"]) == [("f", 1)]
    assert literal_and_not(["@part\ndef f(x, n): pass\nf(x, -1)\nf(x, 1)\n"]) == [("f", 1)]
    assert literal_and_not(["@part\ndef f(x, n): pass\nf(0.5, np.int64(1))\nf(x, n)\n"]) == []
    assert literal_and_not(path.read_text(encoding="utf-8") for path in sorted((ROOT / "mpm_nodes").rglob("*.py"))) == []
