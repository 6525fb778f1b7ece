"""The mechanism: residuals, strategies, what they cost and the variances they give."""
