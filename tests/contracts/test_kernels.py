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
