"""python -m labs_helpers.grading.handout.folder 02 04: see folder.py."""

import sys

from labs_helpers.grading.handout.folder import main

sys.exit(main())
