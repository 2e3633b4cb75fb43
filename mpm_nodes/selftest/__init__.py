"""What SECURITY.md promises, tried: hostile graphs, damaged files, deaths, full disks, limits, stops; the figures of it."""
