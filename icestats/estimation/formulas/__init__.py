"""The formulas of estimates: groups of rows and predicates in, selectivities and row counts out.

Arrays and sketches come in; estimates, each with the bounds that its evidence proves, go out. Nothing here touches
storage or an engine.
"""
