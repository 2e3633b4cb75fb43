"""A plugin for mypy: `Stage["particles", "grid"]` names ports, not types; a stage returns nothing.

Projects with stages of their own write `plugins = ["mpm_nodes.mypy_plugin"]` in the settings of mypy. For type checkers `Stage` is
another name of `typing.Literal`, so that they take the names for texts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mypy.plugin import AnalyzeTypeContext, Plugin
from mypy.types import NoneType, Type

LITERAL = "typing.Literal"


class StagePlugin(Plugin):
    """Reads the return annotation of stages as None."""

    def get_type_analyze_hook(self, fullname: str) -> Callable[[AnalyzeTypeContext], Type] | None:
        """Return what reads the annotation, None for other types than `Literal`."""
        return _read if fullname == LITERAL else None


def _read(context: AnalyzeTypeContext) -> Type:
    if context.type.name.rpartition(".")[2] == "Stage":
        return NoneType()
    analyser: Any = context.api
    return analyser.analyze_literal_type(context.type)


def plugin(version: str) -> type[Plugin]:
    """Return the plugin; mypy calls this."""
    return StagePlugin
