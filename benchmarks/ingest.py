"""Reading LETOR text: our parser beside scikit-learn's loader, on generated text and on MQ2008 where it is there.

python benchmarks/ingest.py
"""

import os
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.pairs import alternate, columns
from benchmarks.results import Table
from ltr.data import letor


def write_generated(path: Path, n_documents: int = 40_000, n_features: int = 136) -> None:
    """MSLR-like text: 120 documents a query, dense features of mixed length."""
    rng = np.random.default_rng(1)
    features = rng.gamma(1.0, 20.0, (n_documents, n_features)).round(4)
    features[:, ::3] = features[:, ::3].round()
    labels = rng.integers(0, 5, n_documents)
    with open(path, "w") as file:
        for d in range(n_documents):
            pairs = " ".join(f"{f + 1}:{x:g}" for f, x in enumerate(features[d]))
            file.write(f"{labels[d]} qid:{d // 120 + 1} {pairs}\n")


def ours(path: Path) -> letor.Lines:
    return letor.parse(np.memmap(path, np.uint8, "r"))


def main() -> None:
    from sklearn.datasets import load_svmlight_file

    mq2008 = Path(os.environ.get("LAMBDAFLOW_DATA", "../shared/data")) / "mq2008" / "S2.txt"
    title, head = "Reading LETOR text beside load_svmlight_file", columns("scikit-learn")
    table = Table("ingest.letor", title, head, ("scikit-learn",), keep=mq2008.is_file())
    with tempfile.TemporaryDirectory() as folder:
        generated = Path(folder) / "generated.txt"
        write_generated(generated)
        files = {"generated, 40,000 documents × 136": generated} | ({"MQ2008 S2": mq2008} if mq2008.is_file() else {})
        for name, path in files.items():
            size = path.stat().st_size / 1e6
            features, labels, _ = load_svmlight_file(str(path), query_id=True)
            lines = ours(path)
            assert np.array_equal(lines.labels, labels)
            assert np.array_equal(lines.features[:, : features.shape[1]], features.toarray().astype(np.float32))
            timing = alternate(lambda path=path: ours(path), lambda path=path: load_svmlight_file(str(path), query_id=True))
            table.add(f"{name}, {size:.0f} MB", *timing.cells)
    table.record()


if __name__ == "__main__":
    main()
