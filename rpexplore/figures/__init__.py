"""From DataFrames to Plotly figures."""
