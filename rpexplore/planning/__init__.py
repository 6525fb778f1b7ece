"""From a workload, a loss and a budget to a plan, with its proof and its verification."""
