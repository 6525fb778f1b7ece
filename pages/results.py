"""Results: look at what was released, and make other tables of it."""

from pages.components.shared.texts import runs_here

if runs_here("Results"):  # else nothing of it may even be imported
    from pages.components.results.page import draw

    draw()
