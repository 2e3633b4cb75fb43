"""Packages that pyproject.toml cannot name: samples/ is installed as `mpm_nodes_samples`.

`packages.find` finds folders by their own names only, and `samples` is a name that other projects install as well.
"""

from setuptools import find_namespace_packages, find_packages, setup
from setuptools.command.build_py import build_py


class Build(build_py):
    """Leaves out the scripts that made the geometry of the samples: it is installed itself."""

    def find_package_modules(self, package, package_dir):
        """Return the modules of a package that are installed."""
        found = super().find_package_modules(package, package_dir)
        return [each for each in found if not (package == "mpm_nodes_samples" and each[1].startswith("make_"))]


setup(
    packages=[
        # the editor's page is installed as it was built, without its sources and what npm puts beside them
        *find_namespace_packages(include=["mpm_nodes", "mpm_nodes.*", "usd_io", "usd_io.*"], exclude=["mpm_nodes.editor.web*"]),
        "mpm_nodes_samples",
        *(f"mpm_nodes_samples.{name}" for name in find_packages("samples")),
    ],
    package_dir={"mpm_nodes_samples": "samples"},
    cmdclass={"build_py": Build},
)
