"""What a particle costs on other processors: counted from assembly, and held to ceilings."""

from __future__ import annotations

import json
import platform

import instructions
import pytest
from machine_loops import Counts, per_particle, routines_of

from mpm_nodes.bench.rows import Row
from mpm_nodes.data import MpmNodesError

X86 = """
_ZN4room14scatter_fieldsB2v1Ex:                 # @_ZN4room14scatter_fieldsB2v1Ex
# %bb.0:
\tpushq\t%rbp
\tmovq\t%rsp, %rbp
.LBB0_1:                                # %B1
                                        # =>This Loop Header: Depth=1
                                        #     Child Loop BB0_2 Depth 2
\tvmovups\t%ymm0, -64(%rbp)               # 32-byte Spill
\tcallq\thelper@PLT
\tjne\t.LBB0_2
.LBB0_2:                                # %B2
                                        #   Parent Loop BB0_1 Depth=1
                                        # =>  This Inner Loop Header: Depth=2
\tvfmadd231ps\t32(%rsp), %ymm1, %ymm2     # 32-byte Folded Reload
\tcmpl\t$16, %eax
\tjl\t.LBB0_2
# %bb.3:                                #   in Loop: Header=BB0_1 Depth=1
\tjmp\t.LBB0_1
.Lfunc_end0:
helper:                                 # @helper
# %bb.0:
\tvmovups\t(%rbp), %ymm0
\tretq
.Lfunc_end1:
"""

ARM = """
_ZN4room13gather_fieldsB2v1Ex:                  // @_ZN4room13gather_fieldsB2v1Ex
// %bb.0:
\tstp\tx29, x30, [sp, #-16]!           // 16-byte Folded Spill
.LBB0_1:                                // %B1
                                        // =>This Inner Loop Header: Depth=1
\tldr\tq0, [sp, #16]                   // 16-byte Folded Reload
\tfmla\tv0.4s, v1.4s, v2.s[0]
\ttbz\tw8, #0, .LBB0_1
.Lfunc_end0:
"""


def test_loops_and_what_is_in_them_are_read_from_assembly():
    """Each loop has its own instructions only; the frame pointer means the stack where it is set up, and a number elsewhere."""
    routines = routines_of(X86)
    scatter = routines["_ZN4room14scatter_fieldsB2v1Ex"]
    assert scatter.title == "scatter_fields"
    assert scatter.loops["BB0_1"].own == Counts(4, 1, 1) and scatter.loops["BB0_1"].calls == ["helper"]
    assert scatter.loops["BB0_2"].own == Counts(3, 1, 1)
    assert (scatter.loops["BB0_2"].depth, scatter.loops["BB0_2"].parent) == (2, "BB0_1")
    assert routines["helper"].loops[""].own == Counts(2, 0, 0)
    assert routines_of(ARM)["_ZN4room13gather_fieldsB2v1Ex"].loops["BB0_1"].own == Counts(3, 1, 1)


def test_a_particle_pays_its_own_loop_and_a_sixteenth_of_the_others():
    """What a loop over sixteen particles calls is part of it."""
    costs = per_particle(X86)
    assert costs["single"] == Counts(3, 1, 1)
    assert costs["sixteen"] == Counts(6 / 16, 1 / 16, 1 / 16)


def test_every_ceiling_can_be_missed():
    """One instruction, one stack access or one branch more than allowed is told, with its loop and processor."""
    for cpu, loops in instructions.CEILINGS.items():
        for loop, most in loops.items():
            allowed = {c: {name: {"single": Counts()} for name in instructions.LOOPS} for c in instructions.CPUS}
            allowed[cpu][loop] = {"single": Counts(**vars(most))}
            assert instructions.too_many(allowed) == []
            for name in ("instructions", "stack", "branches"):
                above = {**vars(most), name: vars(most)[name] + 1}
                allowed[cpu][loop] = {"single": Counts(**above)}
                (line,) = instructions.too_many(allowed)
                assert line.startswith(f"{cpu}, {loop}: ") and name in line


@pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="compiles for x86-64 machines")
def test_no_processor_pays_more_than_its_ceiling():
    """Both loops of neo-Hookean, quadratic and APIC, for six processors of which none need be here."""
    found = instructions.counts(Row(particles=instructions.PARTICLES, threads=1))
    assert set(found) == set(instructions.CPUS) == set(instructions.CEILINGS)
    assert instructions.too_many(found) == []
    for cpu, loops in found.items():
        for loop, parts in loops.items():
            assert parts["single"].instructions > 90 and parts["sixteen"].instructions > 20, (cpu, loop)
    wide = found["znver4"]
    assert wide["scatter"]["single"].stack == wide["gather"]["single"].stack == 0
    # the last few particles of a block are stored without cascades of branches: two loops' own, and one for what is full
    assert all(parts["sixteen"].branches < 1.5 for loops in found.values() for parts in loops.values())
    assert all(parts["single"].branches <= 3 for loops in found.values() for parts in loops.values())


def test_the_command_prints_a_table_and_says_what_is_above(monkeypatch, capsys, tmp_path):
    """The exit code is 1 where a ceiling is missed, and ceilings hold for the row that they were set for only."""
    cheap = {
        cpu: {loop: {"single": Counts(10, 1, 1), "sixteen": Counts(2, 0, 0)} for loop in instructions.LOOPS}
        for cpu in instructions.CPUS
    }
    dear = {
        cpu: {loop: {"single": Counts(9999, 1, 1), "sixteen": Counts()} for loop in instructions.LOOPS} for cpu in instructions.CPUS
    }
    for found, arguments, code in ((cheap, [], 0), (dear, [], 1), (dear, ["--kernel", "cubic"], 0)):
        monkeypatch.setattr(instructions, "counts", lambda row, found=found: found)
        assert instructions.main(["--json", str(tmp_path / "counts.json"), *arguments]) == code
        printed = capsys.readouterr().out
        assert all(cpu in printed for cpu in instructions.CPUS) and ("NOT MET" in printed) == bool(code)
    assert json.loads((tmp_path / "counts.json").read_text())["znver3"]["gather"]["single"]["instructions"] == 9999


def test_other_machines_are_told_that_they_cannot(monkeypatch):
    """numba on ARM makes no code for x86-64."""
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with pytest.raises(MpmNodesError, match="on x86-64 machines only, this is aarch64"):
        instructions.main([])
