"""What `mpm-nodes sample` cooks: the sizes as published, cameras, the figures that all have, and the run that prints them."""
