"""The papers' tables beside ours, and what they come to: docs/papers.md between markers, made from the files of results in docs/papers/.

    <!-- paper: donmez table 3 -->
    … a table, whence its numbers are, and the verdict
    <!-- end -->

lambdaflow run conf/papers/donmez2009/table3.yaml --record docs/papers/donmez2009.json   # runs, keeps, and says what differs
python -m benchmarks.papers                                                              # writes the blocks and the verdicts of the page
python -m benchmarks.papers --add FILE.json                                              # takes over what was recorded elsewhere

A verdict is a rule over recorded numbers (`Block.judge`). It is withheld where a model does not beat random weights by its own measure.
"""
