"""Plots of sweeps and designs as data; `render` draws them."""
