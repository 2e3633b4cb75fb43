"""Planted defects of the editor's server: who may call, what may be named, what may be overwritten."""

from __future__ import annotations

from defect import Defect

_STRANGERS, _COOKS = "tests/editor/test_strangers.py", "tests/editor/test_cooking.py"
_SERVER, _FILES, _FRAMES = "tests/editor/test_server.py", "tests/editor/test_project.py", "tests/editor/test_frames.py"
_LAYERS = "tests/editor/test_cache_layers.py"
_PREVIEWS, _PREVIEW = "mpm_nodes/editor/previews.py", "tests/editor/test_previews.py"
DEFECTS = (
    Defect(
        "another site may call",
        "mpm_nodes/editor/server.py",
        'if heads.get("Origin") != f"http://{host}":',
        'if heads.get("Origin", f"http://{host}") != f"http://{host}":',
        f"{_SERVER}::test_calls_of_strangers_are_refused",
    ),
    Defect(
        "a name that is bound to this machine may call",
        "mpm_nodes/editor/server.py",
        "if host not in self.server.hosts or any(",
        "if any(",
        f"{_SERVER}::test_calls_of_strangers_are_refused",
    ),
    Defect(
        "a cache that is a link is followed",
        "mpm_nodes/editor/project.py",
        "if not folder.resolve().is_relative_to(self.root):",
        "if False:",
        f"{_SERVER}::test_a_cache_that_is_a_link_is_not_followed",
    ),
    Defect(
        "what another program has written is overwritten",
        "mpm_nodes/editor/project.py",
        "if now != read_as:",
        "if now and not read_as:",
        f"{_FILES}::test_what_another_program_has_written_is_not_overwritten",
    ),
    Defect(
        "half a character cuts the connection",
        "mpm_nodes/editor/project.py",
        "except UnicodeEncodeError as error:",
        "except FileNotFoundError as error:",
        "tests/editor/test_stumbles.py::test_half_a_character_is_told_and_not_written",
    ),
    Defect(
        "a missing file is a trace beside no problems",
        "mpm_nodes/commands/validate.py",
        "except MpmNodesError as error:  # a file",
        "except FileNotFoundError as error:  # a file",
        "tests/editor/test_stumbles.py::test_a_file_that_is_missing_is_a_problem_of_its_node",
    ),
    Defect(
        "frames are half a step off",
        "mpm_nodes/editor/quantised.py",
        "rows[:, axis] = np.rint(np.clip(steps, 0.0, STEPS))",
        "rows[:, axis] = np.floor(np.clip(steps, 0.0, STEPS))",
        f"{_FRAMES}::test_places_and_values_are_off_by_half_a_step_at_most",
    ),
    Defect(
        "the node to cook to is another argument",
        "mpm_nodes/editor/calls.py",
        'if not re.fullmatch(self.known["name_pattern"], filled["node"]):',
        'if not filled["node"]:',
        f"{_SERVER}::test_a_node_to_cook_to_is_a_name",
    ),
    Defect(
        "a cook to a node lacks what its sources need",
        "mpm_nodes/graph/document/upstream.py",
        "open_ends += fresh",
        "open_ends += ()",
        "tests/graph/test_upstream.py::test_what_a_node_needs_stays_and_what_it_gives_is_written",
    ),
    Defect(
        "a cache is written behind a cache",
        "mpm_nodes/graph/document/upstream.py",
        'if declaration is None or declaration.category == "Cache":',
        "if declaration is None:",
        "tests/graph/test_upstream.py::test_a_writer_writes_for_itself",
    ),
    Defect(
        "a cook to a solve that tells no forces warns of them",
        "mpm_nodes/graph/document/upstream.py",
        'if fitting and (port.name != FORCES or graph.nodes[node].knobs.get("contact_forces")):',
        "if fitting:",
        "tests/graph/test_upstream.py::test_forces_are_written_where_the_solve_tells_them",
    ),
    Defect(
        "the first points that are sent are those of one corner",
        "mpm_nodes/editor/quantised.py",
        """(int(f"{n:0{bits}b}"[::-1], 2) ^ turns)""",
        "(n ^ turns)",
        f"{_FRAMES}::test_at_most_as_many_points_are_sent_and_every_beginning_is_even",
    ),
    Defect(
        "a file that plays a cache is larger than asked for",
        "mpm_nodes/editor/one_file.py",
        "        if total <= room:",
        "        if total <= 2 * room:",
        "tests/editor/test_one_file.py::test_points_are_left_out_until_the_file_is_as_small_as_asked_for",
    ),
    Defect(
        "a stranger's page is refused after all has been packed",
        "mpm_nodes/editor/one_file.py",
        "    refuse_foreign(path, _is_ours)",
        "    pass",
        "tests/editor/test_one_file.py::test_what_does_not_fit_or_is_not_there_is_told",
    ),
    Defect(
        "a volume's file outside of the cache is read",
        "mpm_nodes/editor/layers.py",
        "if not path.resolve().is_relative_to(scene.path.parent.resolve()):",
        "if False:",
        f"{_LAYERS}::test_a_volume_that_lies_elsewhere_is_not_read",
    ),
    Defect(
        "a particle is followed by its place in the file",
        "mpm_nodes/editor/histories.py",
        "at = np.flatnonzero(ids == ident) if ids is not None else np.zeros(0, int)",
        "at = np.array([ident]) if ids is not None else np.zeros(0, int)",
        f"{_LAYERS}::test_a_particle_is_followed_by_its_id",
    ),
    Defect(
        "the token is not asked for",
        "mpm_nodes/editor/server.py",
        'if not hmac.compare_digest(heads.get("X-Token", "")',
        'if heads.get("X-Token") and not hmac.compare_digest(heads.get("X-Token", "")',
        f"{_STRANGERS}::test_no_request_is_a_defect_and_none_of_a_stranger_changes_anything",
    ),
    Defect(
        "a request that drips is waited for",
        "mpm_nodes/editor/server.py",
        "connection.shutdown(socket.SHUT_RDWR)  # its thread",
        "pass  # its thread",
        f"{_STRANGERS}::test_a_request_that_drips_is_hung_up_on",
    ),
    Defect(
        "a branch of a branch asks for states that it never had",
        "mpm_nodes/editor/project.py",
        'if taken is None or frame - 1 >= taken["last"]',
        "if taken is None or frame >= 0",
        f"{_COOKS}::test_a_cook_goes_on_from_a_frame_in_place_of_another",
    ),
    Defect(
        "a draft may be read by everybody",
        "mpm_nodes/editor/drafts.py",
        "replace(name, data, 0o600)",
        "replace(name, data)",
        "tests/editor/test_drafts.py::test_a_draft_is_kept_beside_its_file_and_found_again",
    ),
    Defect(
        "a quick setup lies on a cache of that name",
        "mpm_nodes/editor/project.py",
        'return os.path.lexists(path) or os.path.lexists(path.with_name(f"{path.stem}_cache"))',
        "return os.path.lexists(path)",
        "tests/editor/test_quick.py::test_a_name_that_is_taken_is_left_alone",
    ),
    Defect(
        "the surface of a quick setup passes by its look",
        "mpm_nodes/editor/quick.py",
        'if wire == "motion.particles"})',
        'if wire == "motion.mesh"})',
        "tests/editor/test_quick.py::test_a_setup_looks_like_its_picture",
    ),
    Defect(
        "a preview is shown of a graph that has changed",
        _PREVIEWS,
        'seen = {"settings": document.get("settings", {}), "nodes": nodes}',
        'seen = {"settings": document.get("settings", {}), "nodes": sorted(nodes)}',
        f"{_PREVIEW}::test_the_key_is_what_changes_a_cook",
    ),
    Defect(
        "a preview hides a cook of one's own",
        "mpm_nodes/editor/calls.py",
        "own = own or preview_of(",
        "own = preview_of(",
        f"{_PREVIEW}::test_a_cook_takes_its_place",
    ),
    Defect(
        "places of a preview lie a step below",
        _PREVIEWS,
        "np.minimum((array + steps // 2) // steps * steps, 65_535)",
        "np.minimum(array // steps * steps, 65_535)",
        f"{_PREVIEW}::test_a_preview_holds_what_the_cook_holds",
    ),
    Defect(
        "a resumed cook forgets what was taken before",
        "mpm_nodes/editor/times.py",
        "found = kept_times(files, revision)",
        'found = {"nodes": {}, "stages": {}}',
        "tests/editor/test_times.py::test_times_are_kept_and_a_resumed_cook_adds_to_them",
    ),
)
