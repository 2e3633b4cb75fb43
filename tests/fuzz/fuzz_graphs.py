"""Coverage-guided fuzzing of the graph loader: `pip install atheris`, then `python tests/fuzz/fuzz_graphs.py CORPUS`.

libFuzzer keeps what reaches new code, and takes its own options (-max_total_time=3600). Its mutations are those of the selftest,
on the structure of the document, and its own, on the bytes. A crash is what the selftest calls a fault: another error than the
family's, an endless message, more than a second, a valid graph that is another one when saved. An empty corpus is filled with the
selftest's sound documents.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from pathlib import Path

import atheris

sys.path.append(str(Path(__file__).parents[2]))

with atheris.instrument_imports(include=["mpm_nodes.graph", "mpm_nodes.nodes", "mpm_nodes.data", "mpm_nodes.regular_files"]):
    from mpm_nodes.graph.declare import registry
    from mpm_nodes.packaged_samples import samples_folder
    from tests.selftest import graphs, mutants

KNOWN = registry.load(path="", entry_points=False)
FOLDER = Path(tempfile.mkdtemp(prefix="mpm_nodes_fuzz_"))


def judge(data: bytes) -> None:
    """Validate a graph file; raise where that shows a fault."""
    found = graphs.judged(data, FOLDER, KNOWN)
    # compiled for coverage, everything is some ten times slower
    if found.fault and not (found.fault.startswith("takes ") and found.seconds < 10 * graphs.MOST_SECONDS):
        raise AssertionError(found.fault)


def mutate(data: bytes, largest: int, seed: int) -> bytes:
    """Change the structure of a document, or its bytes."""
    chance = random.Random(seed)
    if chance.random() < 0.25:
        return atheris.Mutate(data, largest)
    try:
        document = json.loads(data)
        changed = mutants.Mutant(document, [chance.getrandbits(48) for _ in range(chance.randrange(1, 4))], None).content()
    except (ValueError, TypeError, RecursionError, AttributeError, KeyError, OverflowError, MemoryError):
        return atheris.Mutate(data, largest)
    return changed[:largest]


def main() -> None:
    """Fuzz until stopped."""
    sound = list(mutants.documents(KNOWN, samples_folder()))
    graphs.prepare(sound, FOLDER, KNOWN)
    corpus = next((Path(text) for text in sys.argv[1:] if not text.startswith("-")), None)
    if corpus is not None:
        corpus.mkdir(parents=True, exist_ok=True)
        if not any(corpus.iterdir()):
            for number, document in enumerate(sound):
                (corpus / f"sound{number}.json").write_text(json.dumps(document))
    options = ["-max_len=60000", "-timeout=120", "-rss_limit_mb=4000"]
    atheris.Setup([sys.argv[0], *options, *sys.argv[1:]], judge, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
