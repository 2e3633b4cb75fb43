"""Packages that pyproject.toml cannot name: samples/ is installed as `mpm_nodes_samples`.

`packages.find` finds folders by their own names only, and `samples` is a name that other projects install as well.
"""

from setuptools import find_namespace_packages, find_packages, setup

setup(
    packages=[
        # the editor's page is installed as it was built, without its sources and what npm puts beside them
        *find_namespace_packages(include=["mpm_nodes", "mpm_nodes.*", "usd_io", "usd_io.*"], exclude=["mpm_nodes.editor.web*"]),
        "mpm_nodes_samples",
        *(f"mpm_nodes_samples.{name}" for name in find_packages("samples")),
    ],
    package_dir={"mpm_nodes_samples": "samples"},
)
