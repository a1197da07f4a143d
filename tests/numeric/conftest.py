"""Every kernel here runs with all checks of the simulator on."""

import os

os.environ.setdefault("TILELANG_SIM_CHECK", "all")
