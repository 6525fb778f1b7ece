"""Plans for areas in areas as DataFrames and sentences.

`levels` has their sizes, and a plan beside shares of the budget by level; `accuracy` and
`distributions` what is inaccurate, by area and of all areas together; `targets` and `usefulness`
whether that is enough. `grid` is how tables by level are typed in, `map` where areas lie.

Imports `analysis` and what that may import.
"""
