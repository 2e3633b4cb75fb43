"""Cook a graph in another process: start it, read its progress without waiting, stop it, show its frames."""

import contextlib
import time
import traceback

import bpy

from . import (
    cache_import,
    environment,
    figures,
    graph_file,
    history,
    places,
    problems,
    resolutions,
    revisions,
    scene_input,
    steps,
    timeline,
)
from .history import key_of
from .running import RunningCook
from .trees import GRAPH_TREE

INTERVAL = 0.25
"""Seconds between two looks at the running cooks."""

PATIENCE = 60.0
"""Seconds that a cook goes on without its graph."""

JOBS = {}
"""Running cooks by the `key_of` their tree."""

WAITING = []
"""Cooks that wait, the next one first: (`key_of` the tree, `key_of` the scene, whether at the High resolution)."""


# ---------------------------------------------------------------- what is cooked
def write_graph(tree, scene):
    """Export the objects of the scene and write the graph that is to be cooked; return its path, None when that failed.

    What is wrong is shown on the nodes and in the panel.
    """
    return steps.finish(write_steps(tree, scene))


def write_steps(tree, scene):
    """Do as `write_graph`, in steps."""
    path = places.graph_path(tree)
    owner = places.other_owner(path)
    if owner:
        problems.report(tree, f"{path} belongs to {owner}; choose another Folder for this graph, or give it another name", True)
        return None
    if busy() and any(getattr(node, "scene_object", None) for node in tree.nodes):
        problems.report(tree, "Leave edit mode first: objects of the scene are to be written out", True)
        return None
    try:
        values = yield from scene_input.gather_steps(tree, path, scene)
        document = graph_file.save(tree, path.parent, values)
        places.mark_owner(document)
        graph_file.write(document, path)
    except scene_input.SceneFault as error:
        problems.add(error.node, str(error))
        problems.report(tree, f"{error.node.name}: {error}", True)
        return None
    except graph_file.FileFault as error:
        problems.report(tree, str(error), True)
        return None
    except environment.EnvironmentFault as error:
        fail_to_start(tree, str(error))
        return None
    except GeneratorExit:
        problems.report(tree, "Stopped; nothing was written", False)
        raise
    return path


# ---------------------------------------------------------------- start, look, stop
def start(tree, scene, resume=False, frames=None, again=None, high=False):
    """Start cooking a tree; return the job, or None when that failed (the tree and its nodes say why).

    Args:
        tree: The graph.
        scene: Scene whose objects go in and in which the frames appear.
        resume: Continue the newest cook after its last whole frame.
        frames: First and last frame; None takes those of the graph.
        again: Frame from which the cook that is shown is cooked again, as the graph is now; those before it are taken from there.
        high: Cook at the High resolution. One that is continued or cooked again keeps its own.
    """
    return steps.finish(start_steps(tree, scene, resume, frames, again, high))


def start_steps(tree, scene, resume=False, frames=None, again=None, high=False):
    """Do as `start`, in steps."""
    if job_of(tree) is not None:
        problems.report(tree, "This graph is cooking already; cancel it first", True)
        return None
    problems.clear(tree)
    path = yield from write_steps(tree, scene)
    if path is None:
        return None
    words = environment.command("cook", graph=str(path), out=str(places.out_path(tree)))
    if frames is not None:
        words += [word.format(first=frames[0], last=frames[1]) for word in environment.SPEC["cook"]["frames"]]
    if resume:
        words += environment.SPEC["cook"]["resume"]
    try:
        if again is not None:
            words += [
                word.format(frame=again, revision=cache_import.shown_revision(tree)) for word in environment.SPEC["cook"]["again"]
            ]
        resolution = _resolution(tree, resume, again, high)
        job = RunningCook(words + resolutions.arguments(resolution), str(path.parent), scene)
        job.high = resolution is not None
    except (environment.EnvironmentFault, cache_import.CacheFault, OSError) as error:
        fail_to_start(tree, str(error))
        return None
    tree.progress = 0.0
    if timeline.follow(tree, scene):
        history.remember("Cook")
    problems.report(tree, "Starting", False)
    JOBS[key_of(tree)] = job
    if not bpy.app.background and not bpy.app.timers.is_registered(look):
        bpy.app.timers.register(look, first_interval=INTERVAL)
    return job


def _resolution(tree, resume, again, high):
    """Return the resolution that a cook is started with; None for the graph's."""
    if resume:
        known = revisions.found(places.out_path(tree))
        return resolutions.cooked_at(known[-1]) if known else resolutions.given(tree, high)
    if again is not None:
        shown = cache_import.shown_folder(tree)
        return resolutions.cooked_at(shown) if shown else None
    return resolutions.given(tree, high)


def fail_to_start(tree, text):
    """Say on every solve node, and in the panel, that nothing can be cooked."""
    for node in tree.nodes:
        if getattr(node, "record", None) and node.record["sequential"]:
            problems.add(node, text)
    problems.report(tree, text, True)


def job_of(tree):
    """Return the running job of a tree, or None."""
    return JOBS.get(key_of(tree))


def queue(tree, scene, high=False):
    """Cook a tree, as it is by then, when no cook runs and those before it in the queue are over."""
    WAITING.append((key_of(tree), key_of(scene), high))
    ahead = len(JOBS) + len(WAITING) - 1
    problems.report(tree, f"Waits for {ahead} other cook{'' if ahead == 1 else 's'}" if ahead else "Begins at once", False)
    if not bpy.app.background and not bpy.app.timers.is_registered(look):
        bpy.app.timers.register(look, first_interval=INTERVAL)


def waits(tree):
    """Return whether a tree is in the queue."""
    return any(key == key_of(tree) for key, *_ in WAITING)


def _start_next():
    """Start the first of the queue that can be, where nothing cooks; what goes wrong is said on its graph."""
    trees = {key_of(tree): tree for tree in problems.graph_trees(bpy.data)}
    while WAITING and not JOBS and not busy():
        key, scene, high = WAITING.pop(0)
        tree, scene = trees.get(key), history.scene_of(scene)
        if tree is None:
            continue
        if scene is None:
            problems.report(tree, "The scene that it was queued in was deleted; cook it in another", True)
            continue
        try:
            start(tree, scene, high=high)
        except Exception as error:  # those that wait behind it go on
            traceback.print_exc()
            problems.report(tree, f"A defect of this extension: {error!r}; the console says where", True)


def cancel(tree, queued=False):
    """Stop a tree's cook after its substep; called again, at once. Whole frames stay.

    A tree that waits leaves the queue where `queued` says so, or where no cook of it runs.
    """
    job = job_of(tree)
    if waits(tree) and (queued or job is None):
        WAITING[:] = [each for each in WAITING if each[0] != key_of(tree)]
        problems.report(tree, "Taken out of the queue", False)
    elif job is not None:
        job.stop()
        problems.report(tree, "Stopping after this substep; cancel again to stop at once", False)


def look():
    """Take in what running cooks have said, and start what waits; return the seconds until the next look, None when none runs.

    Whatever goes wrong is said on the graph: an exception would end Blender's timer, and no cook would ever be seen to end.
    """
    if steps.RUNNING:
        return INTERVAL
    try:
        _look_at_all()
        _start_next()
    except Exception:
        traceback.print_exc()
    return INTERVAL if JOBS or WAITING else None


def _look_at_all():
    trees = {key_of(tree): tree for tree in problems.graph_trees(bpy.data)}
    for key, job in list(JOBS.items()):
        tree = trees.get(key)
        if tree is None:
            _without_tree(key, job)
            continue
        job.alone_since, over = None, job.is_over()
        try:
            _take_in(tree, job)
        except Exception as error:
            traceback.print_exc()
            going = "the cook is over" if over else "the cook goes on"
            problems.report(tree, f"A defect of this extension: {error!r}; {going}, the console says where", True)
            job.state = "failed" if over else job.state
        if job.state != "running":
            del JOBS[key]
    _redraw()


def _without_tree(key, job):
    """Stop a cook whose graph was deleted; an undo may have taken the graph away for a moment only, and a redo brings it back."""
    if job.alone_since is None:
        job.alone_since = time.monotonic()
    elif time.monotonic() - job.alone_since > PATIENCE:
        job.stop()
    if job.is_over():
        del JOBS[key]


def wait(tree, limit):
    """Look at the cooks until that of a tree is over, for scripts; return its state.

    Raises:
        TimeoutError: It was not over within `limit` seconds.
    """
    job, end = job_of(tree), time.monotonic() + limit
    while waits(tree) or (job is not None and job.state == "running"):
        if time.monotonic() > end:
            raise TimeoutError(f"{tree.name}: still cooking after {limit:g} seconds")
        look()
        job = job_of(tree) or job
        time.sleep(0.02)
    return job.state if job is not None else "none"


def stop_all():
    """Stop every cook; called when the add-on is switched off or another file is opened."""
    for job in JOBS.values():
        job.stop()
    JOBS.clear()
    WAITING.clear()


def _take_in(tree, job):
    over = job.is_over()
    events = job.events()
    for event in events:
        job.take(event)
    if any(event["event"] == "warning" for event in events):
        job.warned = problems.warn(tree, list(dict.fromkeys(job.warnings)))
    for event in events:
        _show_progress(tree, job, event)
    over = over and job.is_over()
    if tree.load_frames and job.frames:
        if busy():  # an import would throw the artist out of edit mode
            if over:
                problems.report(tree, "The cook is over; its last frames appear when you leave edit mode", False)
            return
        if job.wants_to_show():
            _show_frames(tree, job)
    if over:
        _finish(tree, job)


def busy():
    """Return whether the artist is in a mode that importing or exporting would end."""
    return getattr(bpy.context, "mode", "OBJECT") != "OBJECT"


def _show_progress(tree, job, event):
    first, last = job.span
    count = max(1, last - first + 1)
    if event["event"] == "estimate":
        problems.report(tree, f"Starting; {figures.needs_in_words(event)}", False)
    elif event["event"] == "substep":
        problems.report(tree, _and_warned(job, figures.substep_in_words(event, last)), False)
    elif event["event"] == "pace" and event.get("share") is not None:
        tree.progress = min(1.0, (event["frame"] - first + event["share"]) / count)
    elif event["event"] == "frame_done":
        tree.seconds_a_frame = event.get("seconds") or tree.seconds_a_frame
        tree.progress = (event["frame"] - first + 1) / count
        left = figures.duration_in_words(event.get("seconds_left") or 0.0)
        particles = f", {event['particles']} particles" if event.get("particles") else ""
        problems.report(tree, _and_warned(job, f"Frame {event['frame']} of {last} done{particles}; {left} left"), False)
    elif event["event"] in ("note", "compiling"):
        problems.report(tree, event["message"], False)


def _and_warned(job, text):
    return "\n".join(filter(None, [text, job.warned]))


def _show_frames(tree, job):
    scene = history.scene_of(job.scene)
    if scene is None or not job.frames:
        return
    job.unseen, shown = "", cache_import.shown_folder(tree)
    coarse = shown is not None and shown.is_dir() and resolutions.cooked_at(shown) is None and resolutions.of_tree(tree)
    job.rendered = bool(job.high and coarse)
    try:
        if job.rendered:
            history.render(tree, job.revision, scene)
        else:
            history.show(tree, job.revision, scene, job.frames)
    except cache_import.CacheFault as error:
        job.unseen = str(error)
    except Exception as error:
        traceback.print_exc()
        job.unseen = f"A defect of this extension: {error!r}; the console says where"
    if job.unseen:
        problems.report(tree, job.unseen, True)


def _finish(tree, job):
    """Say how a cook ended; what went wrong goes to the nodes that it names."""
    code = job.process.returncode
    names = {entry["code"]: entry["name"] for entry in environment.SPEC["cook"]["exit_codes"]}
    job.state = {"done": "done", "cancelled": "cancelled"}.get(names.get(code), "failed")
    kept = f"{len(job.frames)} frame{'' if len(job.frames) == 1 else 's'}"
    if job.frames and not job.rendered:
        tree.revision = job.revision
    if job.on_failure is not None and (job.unseen or not job.frames):
        job.on_failure()
    if job.state == "done":
        scene = history.scene_of(job.scene)
        timing = timeline.rate_differs(tree, scene) + timeline.ends_before(scene, job.frames)
        said = f"{kept} cooked, in {job.revision}{'' if job.unseen else timing}"
        problems.report(tree, "\n".join(filter(None, [job.unseen, said, job.warned])), bool(job.unseen))
    elif job.state == "cancelled" or (job.stop_asked and code != 0):
        job.state = "cancelled"
        text = f"Cancelled; {kept} kept. Resume goes on after them"
        for node in tree.nodes:
            if getattr(node, "record", None) and node.record["sequential"]:
                problems.add(node, text, bad=False)
        problems.report(tree, text, False)
    else:
        _finish_failed(tree, job, code, kept)


def _finish_failed(tree, job, code, kept):
    text = "\n".join(line for line in job.lines if "error:" in line or "defect:" in line) or job.error
    text = text or "\n".join(job.lines[-3:])
    if code < 0:
        text = f"The cook was ended by signal {-code}; {kept} kept. Resume goes on after them"
    rest = problems.show_text(tree, text)
    if rest:
        fail_to_start(tree, "\n".join(rest))
    else:
        problems.report(tree, f"The cook failed; see the nodes in red. {kept} kept", True)


def _redraw():
    for window in bpy.context.window_manager.windows if bpy.context.window_manager else ():
        for area in window.screen.areas:
            if area.type == "VIEW_3D" or (
                area.type == "NODE_EDITOR" and getattr(area.spaces.active, "tree_type", "") == GRAPH_TREE
            ):
                area.tag_redraw()


@bpy.app.handlers.persistent
def before_load(*_):
    """Stop cooks before another file is opened."""
    with contextlib.suppress(OSError):
        stop_all()
