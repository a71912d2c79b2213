"""LambdaMART and RankBoost: binning, histograms, split finding, growing, prediction, and other tools' formats."""
