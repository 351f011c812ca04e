"""How laws are tried: the same examples each time, without a clock.

`pytest --hypothesis-profile=search` looks at many more, and at new ones each time.
"""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "search", settings.get_profile("steady"), derandomize=False, max_examples=3_000
)
settings.load_profile("steady")
