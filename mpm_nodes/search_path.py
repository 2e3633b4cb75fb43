"""Where Python may look for modules: never in the working folder, in which a stranger's graph may lie beside a stranger's numpy.py.

Imports nothing but what an interpreter has loaded before it runs its first line: this runs before anything else can be shadowed.
"""

import os
import sys

__all__ = ["PROGRAM", "forget_working_folder", "trusted_path"]

OWN_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""Folder that holds this package: who can write there can change the program itself."""


def _is_program() -> bool:
    """Return whether this process was started as `mpm-nodes ...` or `python -m mpm_nodes...`, not as somebody's script."""
    first = sys.argv[0] if sys.argv else ""
    if first == "-m":  # while `python -m` looks for its module
        return any(text.removeprefix("-m").split(".")[0] == "mpm_nodes" for text in sys.orig_argv[1:])
    return os.path.basename(first).startswith("mpm-nodes")


PROGRAM = _is_program()
"""Whether this process was started as the program; asked when the package is imported, before others change the arguments."""


def trusted_path() -> list[str]:
    """Return `sys.path` without the working folder and without relative entries of PYTHONPATH; our own root follows.

    Entries of PYTHONPATH come last: modules of a user's own nodes are found there, and no numpy there takes the place of the one
    that is installed. The folder of the main script is left out: it is the script's, and a child that this package starts runs
    our code.
    """
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    shunned = {_real(entry) for entry in given if not os.path.isabs(entry)} | {_real(os.curdir)} | _script_folder()
    own = _real(OWN_ROOT)
    kept = [entry for entry in sys.path if os.path.isabs(entry) and _real(entry) not in shunned and _real(entry) != own]
    last = {_real(entry) for entry in given} - _installed()
    behind = [entry for entry in kept if _real(entry) in last]
    return [*(entry for entry in kept if entry not in behind), OWN_ROOT, *behind]


def forget_working_folder() -> None:
    """Take the working folder out of this process's search path, and numba's settings file in it out of reach."""
    sys.path[:] = trusted_path()
    refuse_settings_beside_graphs()


def refuse_settings_beside_graphs() -> None:
    """Keep numba from reading `.numba_config.yaml` in the working folder: it can name a folder of pickled code to load."""
    if "numba" not in sys.modules and os.path.lexists(".numba_config.yaml"):
        import warnings

        sys.modules["yaml"] = None  # type: ignore[assignment]  # numba then cannot read it; nothing of ours needs YAML
        warnings.filterwarnings("ignore", message="A Numba config file is found")  # its cure, installing YAML, would be wrong


def _installed() -> set[str]:
    """Return the folders that packages are installed in, by what Python loads before the first line."""
    site = sys.modules.get("site")
    return {_real(entry) for entry in (*site.getsitepackages(), site.getusersitepackages())} if site else set()


def _script_folder() -> set[str]:
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    return {_real(os.path.dirname(os.path.abspath(script)))} if script else set()


def _real(path: str) -> str:
    return os.path.normcase(os.path.realpath(path or os.curdir))
