"""Where records live: read from files, checked against the domain, counted exactly."""
