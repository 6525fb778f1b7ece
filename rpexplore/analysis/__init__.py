"""From plans to tidy DataFrames and sentences."""
