"""An agent for `exec` that never answers, and leaves when whoever started it is gone."""

import os
import time

started_by = os.getppid()
while os.getppid() == started_by:
    time.sleep(0.05)
