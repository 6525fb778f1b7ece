"""What a privacy budget is and what it means: ρ, μ and (ε, δ)."""
