"""Property tests run the same examples every time, and take what time they need."""

from tests.support import properties

properties.settle()
