"""python -m benchmarks.papers"""

from benchmarks.papers.page import main

main()
