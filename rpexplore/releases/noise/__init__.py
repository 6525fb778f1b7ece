"""Noise: exact samples of discrete distributions, the only room that draws random numbers.

In reading order: `uniform` (bytes and decisions), `discrete_gaussian`, `exponential_mechanism`.

Imports `common` and `errors`.
"""
