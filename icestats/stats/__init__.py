"""Pure statistics: bounds, roll-ups, sketches and histograms.

Arrow values and the bytes of sketches come in; statistics with their errors go out. Nothing here touches storage.
"""
