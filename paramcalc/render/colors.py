"""Colour scales that are safe for colour-blind readers."""

# Matplotlib's viridis at equal steps (Smith and van der Walt 2015), dark to light.
VIRIDIS = ("#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725")
LIGHT = 4  # from this index on, black text is more readable than white
# Eight colours (Okabe and Ito 2008), black left out.
OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
