"""What plots of sweeps and designs show, as data; the drawers are in `render`."""
