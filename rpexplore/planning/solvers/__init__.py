"""The solvers, one problem a module."""
