"""What a curator chooses, kept and edited: scenarios and projects."""
