"""Analysis: plans in, tidy DataFrames out, for pages, reports and notebooks alike."""
