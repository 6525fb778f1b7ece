"""What accurate means: the losses that a plan can minimise."""
