"""Set-up failures: did a test fail before it began, in what prepares it and others?

Knows how test frameworks name that. Many tests that fail so, alike, are one cascade.
"""

import re

from interlock.rca.failure import Failure

_SET_UP = re.compile(
    r"\b(?:setUp(?:Class|Module|TestData|Suite)?|setup_(?:class|module|method|function|session)"
    r"|before(?:All|Each|Suite|Class|Test|Method)|Before(?:All|Each|Suite|Class)|OneTimeSetUp"
    r"|SetUpSuite|SetupSuite|SetupTest|globalSetup|TestMain|ClassInitialize|AssemblyInitialize"
    r"|class_setup|suite setup|initializationError|fixture)\b",
    re.IGNORECASE,
)
_LOOKED_AT = 20_000


def fails_in_set_up(failure: Failure) -> bool:
    """Whether the failure speaks of the set-up before the test."""
    told = (failure.test_name, failure.message[:_LOOKED_AT], failure.stack[:_LOOKED_AT])
    return any(_SET_UP.search(text) for text in told)
