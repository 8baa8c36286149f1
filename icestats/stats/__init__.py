"""Pure statistics: bounds, roll-ups, sketches and histograms. Nothing here touches storage."""
