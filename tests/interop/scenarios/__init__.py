"""What every client has to be able to do; importing this package fills ``SCENARIOS``."""

from interop.scenarios import sending
from interop.scenarios.scenario import SCENARIOS, Scenario, Stage

__all__ = ("SCENARIOS", "Scenario", "Stage", "sending")
