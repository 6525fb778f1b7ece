"""Post-processing: processed tables and combined ones, each an explicit choice with its label."""

from pathlib import Path

import streamlit as st

from pages.components.results.postprocess_task import Work, begin, is_making, new_folder
from pages.components.shared.paths import path_of
from rpexplore.common.concurrency import Progress
from rpexplore.postprocessing.combination import combine
from rpexplore.postprocessing.combination_folder import load_unbiased, write_combined
from rpexplore.postprocessing.estimates import Estimates
from rpexplore.postprocessing.processed_folder import postprocess
from rpexplore.releases.table_folder import Release


def after_the_noise(source: Release | Estimates, folder: Path) -> None:
    """What can be made of unbiased tables; folder: where they are."""
    st.subheader("Post-processing")
    st.markdown(
        "What was released can be made into other tables without looking at any records: it costs "
        "no privacy. The released tables stay as they are; new ones go to a folder of their own, "
        "with a label."
    )
    if is_making():
        return
    with st.expander("Make counts nonnegative or whole"):
        _processing(source, folder)
    with st.expander("Combine with other releases of the same records"):
        _combining(source, folder)


def _processing(source: Release | Estimates, folder: Path) -> None:
    nonnegative = st.checkbox(
        "No negative counts, all tables consistent", key="make nonnegative", persist_state="session"
    )
    st.caption(
        "The nearest tables without a negative count that still agree with each other: cells add "
        "up to the totals of smaller tables, and the total is the noisy one. Biased: counts near 0 "
        "come out too large on average, large ones too small."
    )
    whole = st.checkbox("Whole numbers", key="make whole", persist_state="session")
    st.caption(
        "Each count moves by less than 1; the total is the same in all tables, other totals can "
        "differ from table to table by rounding. Biased: small counts may go to 0 together."
    )
    field = f"processed into, of {folder}"
    output = new_folder("Folder for the processed tables", field, Path(f"{folder}-processed"))
    ready = output is not None and (nonnegative or whole)
    if not (nonnegative or whole):
        st.caption("Tick one of the two, or both, to go on.")
    st.button(
        "Make the processed tables",
        disabled=not ready,
        on_click=begin,
        args=(_to_process(source, output, nonnegative, whole), output, field) if ready else (),
    )


def _to_process(
    source: Release | Estimates, output: Path | None, nonnegative: bool, whole: bool
) -> Work:
    assert output is not None
    return lambda on_progress: postprocess(
        source,
        output,
        nonnegative=nonnegative,
        rounded=whole,
        on_progress=on_progress,
    )


def _combining(source: Release | Estimates, folder: Path) -> None:
    st.markdown(
        "What several releases measured is averaged by accuracy: the most accurate unbiased tables "
        "that follow from all of them, with exact errors. What they spent adds up. That they are "
        "of the same records, nothing in them can show: you answer for it."
    )
    typed = st.text_area(
        "Folders of the other releases, one a line", key="combined with", persist_state="session"
    )
    ledger = st.text_input(
        "Ledger file (optional)",
        key="ledger of combined",
        persist_state="session",
        help="Releases that it knows to be of different records are refused.",
    )
    field = f"combined into, of {folder}"
    output = new_folder("Folder for the combined tables", field, Path(f"{folder}-combined"))
    others = [path_of(line) for line in typed.splitlines() if line.strip()]
    ready = output is not None and bool(others)
    book = path_of(ledger) if ledger.strip() else None
    st.button(
        "Combine them",
        disabled=not ready,
        on_click=begin,
        args=(_to_combine(source, others, book, output), output, field) if ready else (),
    )


def _to_combine(
    source: Release | Estimates, others: list[Path], ledger: Path | None, output: Path | None
) -> Work:
    assert output is not None

    def work(on_progress: Progress) -> None:
        parts: list[Release | Estimates] = [source]
        for place, folder in enumerate(others):
            on_progress(f"Reading {folder.name}", 0.3 * place / len(others))
            parts.append(load_unbiased(folder))
        on_progress("Combining them", 0.3)
        found = combine(*parts, ledger=ledger)
        write_combined(
            found,
            output,
            on_progress=lambda doing, share: on_progress(doing, 0.4 + 0.6 * share),
        )

    return work
