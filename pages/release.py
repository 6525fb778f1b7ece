"""Release: take a plan of tables along, run it on records, once, and look at the result."""

from pages.components.shared.texts import runs_here

if runs_here("Release"):  # else nothing of it may even be imported
    from pages.components.release.page import draw

    draw()
