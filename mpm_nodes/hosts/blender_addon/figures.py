"""Durations, bytes and needs as artists read them."""


def bytes_in_words(count):
    """Return a number of bytes as people read it."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.3g} {unit}"
        count /= 1000.0
    return f"{count:.3g} TB"


def duration_in_words(seconds):
    """Return a duration as artists read it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def needs_in_words(needs):
    """Return what a cook is expected to need: an estimate of the program, with particles, memory and disk in bytes."""
    said = [f"about {needs['particles']} particles"] if needs.get("particles") else []
    for name, place in (("memory", "of memory"), ("disk", "on disk")):
        if needs.get(name):
            said.append(f"{bytes_in_words(needs[name])} {place}")
    if needs.get("unknown"):
        said.append(f"and what is unknown of {', '.join(needs['unknown'])}")
    return ", ".join(said)


def substep_in_words(event, last):
    """Return how far a frame has come, and what holds the length of its steps."""
    said = f"Frame {event['frame']} of {last}, substep {event['substep']}"
    if event.get("particles"):
        said += f", {event['particles']} particles"
    if event.get("dt"):
        said += f", steps of {1e3 * event['dt']:.3g} ms"
    if event.get("limit"):
        said += f", held by {event['limit']}" + (f" of {event['limit_material']}" if event.get("limit_material") else "")
    return said
