"""Figures as SVG: in come Arrow tables and histograms, out goes a picture, and the scales to find values in it.

The same picture stands in the explorer, in a saved notebook and in a report; nothing here knows of widgets.
"""
