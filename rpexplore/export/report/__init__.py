"""The report: one section a module, and the page they are put on."""
