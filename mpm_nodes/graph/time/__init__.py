"""Time: keyframed values, and the clock that maps frames, seconds of the shot and simulated seconds to one another."""
