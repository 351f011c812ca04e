"""Laws are about results, not about how long a busy machine takes to reach them."""

from hypothesis import settings

settings.register_profile("report", deadline=None)
settings.load_profile("report")
