"""What all tests share: they count, and no clock decides whether they pass."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "untimed", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("untimed")
