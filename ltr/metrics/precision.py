"""Precision of the top ranks, and whether the first document is relevant: sums of gains by `ltr.metrics.dcg`'s kernels."""

from ltr.metrics.dcg import gain_mean_prepare, gain_mean_value, gain_row
from ltr.metrics.gains import binary, first_rank, share_of_cutoff
from ltr.metrics.measure import Definition, register

register(
    Definition(
        name="p",
        title="Precision",
        formula="relevant documents among the top k, over k",
        paper="Manning, Raghavan & Schütze 2008, section 8.4",
        gain=binary,
        curve=share_of_cutoff,
        value=gain_mean_value,
        prepare=gain_mean_prepare,
        row=gain_row,
        labels="binary",
        needs_cutoff=True,
        short_rules=frozenset({"size"}),
    )
)
register(
    Definition(
        name="wta",
        title="Winner takes all",
        formula="1 where the first document is relevant",
        paper="Burges 2010 section 3",
        gain=binary,
        curve=first_rank,
        value=gain_mean_value,
        prepare=gain_mean_prepare,
        row=gain_row,
        labels="binary",
        whole=True,
    )
)
