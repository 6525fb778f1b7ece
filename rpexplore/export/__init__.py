"""What a plan is handed over as: documents, scripts, everything in one zip."""
