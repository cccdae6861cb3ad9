"""Pictures of matches for people: timelines as PNG and as HTML."""

from cepheid.report.timeline import Absence, TimelineOptions
from cepheid.report.timeline_html import write_html
from cepheid.report.timeline_png import draw_png

__all__ = ["Absence", "TimelineOptions", "draw_png", "write_html"]
