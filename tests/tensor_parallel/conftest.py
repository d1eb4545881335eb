"""Start four ranks once for several files, because importing PyTorch on each takes longer than most cases."""

from pathlib import Path

import cloudpickle
import pytest

from tests import real_ranks
from tests.tensor_parallel import ranks as on_ranks


def fixtures_of(folder):
    """(of_every_file, results) for the tests that lie in a folder."""

    @pytest.fixture(scope="session")
    def of_every_file(request):
        """What each rank found in the CASES of the files of which there are tests to run, by file and name."""
        here = [item.module for item in request.session.items if item.path.parent == folder]
        cases = {}
        for module in dict.fromkeys(module for module in here if hasattr(module, "CASES")):
            cloudpickle.register_pickle_by_value(module)
            cases |= {(module.__name__, name): case for name, case in module.CASES.items()}
        return real_ranks.run(on_ranks.run_cases, 4, cases)

    @pytest.fixture(scope="module")
    def results(request, of_every_file):
        """What each rank found in the CASES of this file, by name."""
        found = [
            {name: result for (file, name), result in of_rank.items() if file == request.module.__name__}
            for of_rank in of_every_file
        ]
        for of_rank in of_every_file:  # the first to fail is the last that was tried, whichever file it is of
            for case, result in of_rank.items():
                assert not isinstance(result, str), f"{case}: {result}"
        return found

    return of_every_file, results


of_every_file, results = fixtures_of(Path(__file__).parent)
