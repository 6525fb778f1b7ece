"""Results: look at what was released, and make other tables of it."""

from pages.components.results.adaptive import how_it_came_about
from pages.components.results.area_work import area_work
from pages.components.results.areas import browse_areas
from pages.components.results.browser import browse, browse_answers
from pages.components.results.downloads import workbook_download
from pages.components.results.postprocess import HERE, POSTPROCESSING, postprocessing
from pages.components.results.publishing import publishing
from pages.components.results.reading_code import reading_code
from pages.components.results.shrinkage import shrinkage
from pages.components.results.source import record_noun_of, results_source
from pages.components.results.synthetic import (
    browse_records,
    synthesizing,
    where_records_are_made,
)
from pages.components.shared.background import finish, follow_begun
from pages.components.shared.explanations import explained_title
from pages.components.shared.session import kept, show_messages
from rpexplore.postprocessing.areas.area_results import AreaResults
from rpexplore.postprocessing.estimates import Estimates
from rpexplore.postprocessing.processed_tables import ProcessedTables
from rpexplore.postprocessing.synthetic.records import SyntheticRecords
from rpexplore.releases.adaptive.adaptive_release import AdaptiveRelease
from rpexplore.releases.query_release import QueryRelease


def draw() -> None:
    """The page."""
    finish(POSTPROCESSING)
    explained_title("Results")
    show_messages(HERE)
    results = results_source()
    if results is not None:
        source, folder = results
        if isinstance(source, AreaResults):
            browse_areas(source)
            if source.is_biased:
                follow_begun(POSTPROCESSING)
            else:
                area_work(source)
        elif isinstance(source, QueryRelease):
            browse_answers(source)
        elif isinstance(source, SyntheticRecords):
            browse_records(source)
            follow_begun(POSTPROCESSING)
        else:
            attributes, publication = browse(source, folder, record_noun_of(source))
            workbook_download(source, folder, publication)
            publishing(source, folder)
            reading_code(source, folder, attributes, publication.cv_limit)
            if isinstance(source, AdaptiveRelease):
                how_it_came_about(source, record_noun_of(source))
                follow_begun(POSTPROCESSING)
                synthesizing(kept(Estimates.of_adaptive, source), folder)
            elif isinstance(source, ProcessedTables):
                if source.is_smooth:
                    shrinkage(source)
                where_records_are_made(source)
                follow_begun(POSTPROCESSING)
            else:
                postprocessing(source, folder)
                synthesizing(source, folder)
