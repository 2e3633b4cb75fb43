"""What will be cooked, settled before anything is: validation, order of stages, fusion, lineage keys, what the machine needs."""
