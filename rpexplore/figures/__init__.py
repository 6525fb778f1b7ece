"""Figures: tidy DataFrames in, Plotly figures out. Small ones: data is aggregated before."""
