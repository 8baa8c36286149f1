"""Pure statistics: bounds, roll-ups, sketches and histograms.

Values and sketches' bytes come in; statistics with their errors go out. Nothing here touches storage.
"""
