"""What a cook leaves on disk: revision folders, locks, frame transactions, records, checkpoints, and what of it may be deleted."""
