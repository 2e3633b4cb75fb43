"""The cook itself: nodes evaluated frame by frame, in parts and on ranks; resumed, cooked again from a frame, or repaired."""
