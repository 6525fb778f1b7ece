"""Export: a plan as documents and programs to take away. Made from plans, not records."""
