"""``python -m burstlab`` is the ``burstlab`` command."""

import sys

from burstlab.cli import main

sys.exit(main())
