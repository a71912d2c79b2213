"""What each kind of evidence may have found, by hand: for tests of pages, sentences and figures."""

from tasks.evidence.champion import Challenge
from tasks.evidence.drift import Drift
from tasks.evidence.guarantee import Candidate, Frontier, FrontierPoint, Guarantees, Held, Promise, RankerGuarantee
from tasks.evidence.microscope import Inspection, Inspections, LostCause
from tasks.evidence.optimality import CertificateRecord, Certificates
from tasks.evidence.segments import ChangedQuery, Changes, SegmentRow, SegmentsFound
from tasks.evidence.significance import TierResult

CERTIFICATE = CertificateRecord(
    ranker="linear", escape=None, verdict="optimum", measure="ndcg", value=0.8, steps=(0.1, 0.2), relative=True, norm=2.0,
    curves=[[0.79, 0.78]] * 4, envelope=[[0.78, 0.77], [0.795, 0.79]], rising=0, rising_or_tied=0, tie_share=0.0,
    upper_bound=0.0099, epsilon=0.01, delta=0.01, why="", directions=459,
)  # fmt: skip
CERTIFICATES = Certificates((CERTIFICATE,), ("linear", "other"))
CHALLENGE = Challenge(
    "graded", "search", "2", "1", "better", "better than the champion (version 1)", True,
    (TierResult("ndcg_3", 0.02, 0.01, 0.03, 0.0, "better"),), (Drift("features", "f1", 0.4, "f1: stability index 0.40"),),
)  # fmt: skip
PROMISE = Promise("w=1", True, (Candidate("w=1", (-0.001, 0.02), 0.001, 0.001, True),))
GUARANTEE = RankerGuarantee(
    "graded", "judged", 0.01, 0.95, (PROMISE,),
    Held("yes", "better", (
        TierResult("ndcg_3", -0.001, -0.004, 0.002, 0.01, "equal"), TierResult("cndcg_3", 0.02, 0.01, 0.03, 0.0, "better"),
    )),
    Frontier([0.5, 0.4], (FrontierPoint("w=1", True, [0.5, 0.42], [[1e-6, 0.0], [0.0, 1e-5]], 50),), 0.01, 0.95, ("ndcg_3", "cndcg_3")),
)  # fmt: skip
GUARANTEES = Guarantees((GUARANTEE,))
INSPECTION = Inspection(
    "graded", [10, 20], [0.0, 4.0], [[0.6, None], [0.7, 0.3]], [[0.2, 0.8], [0.1, 0.9]], [None, 0.3], [None, 0.1],
    {"all": [0.7, 0.8], "same_label": [0.9, 0.9]}, "ndcg@3", 3, [0.5, 0.6], [0.4, 0.5],
    (LostCause("q<1>", "d", 4.0, 9, 0.4, 0.3),), "nowhere",
)  # fmt: skip
INSPECTIONS = Inspections((INSPECTION,))
SEGMENT = SegmentRow("language", "<de>", "graded", 12, 11, 0.4, 0.5, -0.1, 0.02, 0.001, 0.002)
NOBODY = SegmentRow("language", "en", "graded", 2, 0, None, None, None, None, None, None)
CHANGES = Changes(
    "graded", "judged", "ndcg_3", (ChangedQuery("q7", 0.1, 0.4, -0.3, {"language": "<de>"}, "a <b>"),), (), 1, 0, 13
)  # fmt: skip
SEGMENTS = SegmentsFound("ndcg_3", "judged", 10, (SEGMENT, NOBODY), (CHANGES,))
