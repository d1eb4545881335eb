"""Test the common factor of all time limits of processes, for busy machines."""

import sys

import pytest

from labs_helpers.launch.patience import patience
from labs_helpers.launch.process import ProcessTimeout, run


def test_a_limit_is_times_the_patience(monkeypatch):
    monkeypatch.setenv("LABS_PATIENCE", "600")
    assert run([sys.executable, "-c", "print('done')"], timeout=0.1) == "done\n"


def test_a_limit_that_is_over_says_both(monkeypatch):
    monkeypatch.setenv("LABS_PATIENCE", "2.5")
    with pytest.raises(ProcessTimeout, match=r"did not end within 0.1 s times 2.5 \(LABS_PATIENCE\) and was stopped"):
        run([sys.executable, "-c", "import threading; threading.Event().wait()"], timeout=0.1)


@pytest.mark.parametrize("value", ["much", "0.5", "inf", "nan", ""])
def test_what_is_no_factor_is_refused(value, monkeypatch):
    monkeypatch.setenv("LABS_PATIENCE", value)
    with pytest.raises(ValueError, match=f"LABS_PATIENCE is {value!r}; it has to be a number that is at least 1"):
        patience()
