"""Which packages are installed; everything else stands in pyproject.toml.

Here and not there, because there a search for packages cannot be joined by one from another folder.
"""

from setuptools import find_packages, setup

setup(
    # The recorded measurements travel with an installed course as labs_helpers.recorded: Colab has no checkout.
    packages=[*find_packages(include=["labs_helpers*"]), "labs_helpers.recorded"],
    package_dir={"labs_helpers.recorded": "results"},
)
