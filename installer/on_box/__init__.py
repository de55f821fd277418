"""What the installer runs on a box: sent as text, so these modules import the standard library and each other alone."""
