"""The verb that answers queries from a release, about tables, areas and own counts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rpexplore.cli import area_options, inputs, options
from rpexplore.cli.console import progress, refuse_existing, say_result, text_table, write_new
from rpexplore.common.numbers import shown_few
from rpexplore.common.text import csv_of_frame, describe_numbers, rounded
from rpexplore.errors import ReleaseError, RpexploreError

if TYPE_CHECKING:
    import pandas as pd

    from rpexplore.domain.domain import Domain
    from rpexplore.planning.part_plan import PartPlan
    from rpexplore.planning.plan import Plan
    from rpexplore.releases.area_release import TablesInAreas
    from rpexplore.releases.items import Answer
    from rpexplore.results.area_results import AreaTables

# Each function imports what it needs itself, so that no verb waits for what it does not use.

_MOST_SUMS = 20  # rows shown as text
_FIGURES = ("value", "standard_error", "lower_95", "upper_95")
_EXAMPLE = "the values that count, such as age=18..24"


def answer(
    release_folder: options.ReleaseFolder,
    where: options.Where = None,
    areas: area_options.ListsOfAreas = None,
    area: area_options.OneArea = None,
    level: area_options.AnswerLevel = None,
    within: area_options.AnswerWithin = None,
    per: options.Per = None,
    among: options.Among = None,
    csv: area_options.SumsOut = None,
    escape_formulas: options.EscapeFormulas = False,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Answer a query from a release, with its margin.

    Say which values count: age=18..24 sex=Female counts those who are both. Attributes that are not
    named are summed over. If some table has those that are named, the standard error is exact, with
    all covariances of what is added up. Otherwise a model is fitted to the tables, and its answer
    says "by a model": it is biased, and its error comes from simulated questions. In quotation
    marks each text is a question of its own: "age=18..24 sex=Female" "age=65.. region=R01". Of
    amounts income=sum, income=records and income=mean are answered. Costs no privacy.

    From a release of tables in areas: with --areas sums over lists of areas, of the table of the
    attributes that are named (sex age), or totals. With --area the same of one area, or the query
    about it that names values (sex=Female); with --level the query about each area of a level. A
    count of your own is answered by its name.

    With --per the answer is a share in per cent: status=unemployed --per region, of the records of
    each region; empty where there are too few of these (CV above 20 %). Of own counts, a sum of
    amounts --per a count of records is their mean.
    """
    from rpexplore.results.results import load_any_results
    from rpexplore.results.synthetic.questions import Questions

    if sum(option is not None for option in (area, areas, level)) > 1:
        raise RpexploreError(
            "Give --area CODE for one area, --areas FILE for lists of them, or --level LEVEL for "
            "all of a level: one of these."
        )
    if within is not None and level is None:
        raise RpexploreError("--within goes with --level; for the area itself give --area CODE.")
    if among and not per:
        raise RpexploreError("--among goes with --per; name the values that count without it.")
    if per and areas is not None:
        raise RpexploreError("--per goes with --area or --level, and not with lists of areas.")
    rows = Rows(csv, escape_formulas=escape_formulas, force=force, as_json=as_json)
    if per:
        answer_shares(
            release_folder,
            where or [],
            per,
            among or [],
            area=area,
            level=level,
            within=within,
            rows=rows,
        )
        return
    if level is not None:
        answer_on_level(
            release_folder,
            level,
            within,
            where or [],
            rows=rows,
        )
        return
    lists = area if areas is None else areas
    values_of_area = area is not None and any("=" in text for text in where or [])
    if lists is not None and not values_of_area:
        answer_sums(
            release_folder,
            lists,
            where or [],
            rows=rows,
        )
        return
    if csv is not None:
        raise RpexploreError("--csv goes with tables in areas; leave it out for a single answer.")
    with progress("Reading the release") as on_progress:
        results = load_any_results(release_folder)
        counts = results.own_counts
        questions, answers, units = [where or []], [], [Unit()]
        if area is None and (name := _count_named(counts, where or [])) is not None:
            answers.append(counts.answer(name))
            units = [unit_of_count(counts, name)]
        elif area is not None:
            release, domain = tables_of_area(release_folder, area)
            questions, conditions = inputs.questions(domain, where or [])
            answers += [release.answer(where=texts) for texts in conditions]
            units = [unit_of_amounts(release, domain, texts) for texts in conditions]
        else:
            _refuse_no_count(counts, where or [])
            _refuse_levels_of_areas(results.area_levels, where or [])
            tables = _tables_of(results)
            asked = Questions(tables)
            questions, conditions = inputs.questions(asked.domain, where or [])
            for texts in conditions:
                answer = asked.answer(texts, on_progress=on_progress)
                answers.append(answer)
            units = [unit_of_amounts(tables, asked.domain, texts) for texts in conditions]
    names = ("value", "standard_error", "lower_95", "upper_95", "basis")
    facts = [
        {
            "question": question,
            **{name: getattr(answer, name) for name in names},
            **unit.facts,
        }
        for question, answer, unit in zip(questions, answers, units, strict=True)
    ]
    if len(facts) == 1:
        say_result(as_json, facts[0], _answer_text(answers[0], units[0]))
        return
    texts = [
        f"{' '.join(question)}\n{_answer_text(answer, unit)}"
        for question, answer, unit in zip(questions, answers, units, strict=True)
    ]
    say_result(as_json, {"answers": facts}, "\n\n".join(texts))


def query_of(
    domain: "Domain", texts: Sequence[str], option: str = "A=VALUES"
) -> dict[str, list[float]]:
    """What texts such as age=18..24 select, as releases take it.

    option: by which they were given, for the error
    """
    from rpexplore.domain.values import product_query

    return product_query(domain, texts_of(domain, texts, option))


def texts_of(domain: "Domain", texts: Sequence[str], option: str = "A=VALUES") -> dict[str, str]:
    """Texts such as age=18..24 by attribute; option: by which they were given, for the error."""
    return inputs.texts_by_attribute(domain, texts, option, _EXAMPLE)


class Unit(NamedTuple):
    """What an answer is a number of: "EUR, sum of income", and what was done to the amounts.

    Both are "" for records.
    """

    text: str = ""
    clamping: str = ""

    @property
    def facts(self) -> dict[str, str]:
        """What is there of it."""
        both = {"unit": self.text, "clamping": self.clamping}
        return {name: fact for name, fact in both.items() if fact}


def unit_of_amounts(tables: Any, domain: "Domain", texts: Mapping[str, str]) -> Unit:
    """That of an answer of tables to a question."""
    from rpexplore.releases.means import unit_of_query

    text = unit_of_query(domain, texts, "", tables.table_names).strip(", ")
    return Unit(text, tables.clamping_of(texts) if text else "")


def unit_of_count(counts: Any, name: str) -> Unit:
    """That of an own count."""
    from rpexplore.domain.result_schema import OWN_COUNT

    text = counts.queries.unit(counts.queries.names.index(name))
    return Unit(text, counts.clamping_of([OWN_COUNT]) if text else "")


def _answer_text(answer: "Answer", unit: Unit) -> str:
    """The answer to a question, on three lines; by what where a model gave it; what was clamped."""
    from rpexplore.results.synthetic.questions import ModelAnswer

    text = (
        f"Value            {f'{answer.value:,.2f} {unit.text}'.rstrip()}\n"
        f"Standard error   {rounded(answer.standard_error, 4, zeros=True)}\n"
        f"95 % interval    {answer.lower_95:,.2f} to {answer.upper_95:,.2f}"
    )
    by_model = answer.describe() if isinstance(answer, ModelAnswer) else ""
    return "\n".join(filter(None, [text, by_model, unit.clamping]))


def _count_named(counts: Any, where: Sequence[str]) -> str | None:
    """The own count that a question is the name of."""
    return counts.name_of(where[0]) if counts is not None and len(where) == 1 else None


def _refuse_levels_of_areas(levels: Sequence[str], where: Sequence[str]) -> None:
    """Raise `RpexploreError` where areas are named like values of an attribute."""
    for name, _, code in (text.partition("=") for text in where):
        if name in levels:
            raise RpexploreError(
                f"{name!r} is a level of areas, and no attribute; give --area {code or 'CODE'} for "
                f"one area, or --level {name} for all of the level."
            )


def _refuse_no_count(counts: Any, where: Sequence[str]) -> None:
    """Raise `RpexploreError` for a word that is neither an own count nor values of an attribute."""
    # Counts by attributes are called "adults, sex = Female".
    words = [text for text in where if "=" not in text or "," in text.partition("=")[0]]
    if counts is None or not words:
        return
    names = list(counts.queries.names)
    if words[0] in names:
        raise RpexploreError(f"The count {words[0]!r} is answered by itself; name it alone.")
    close = get_close_matches(words[0], names, n=1)
    if "=" in words[0] and not close:
        return
    advice = f"did you mean {close[0]!r}?" if close else f"the counts are {shown_few(names)}."
    raise RpexploreError(
        f"{words[0]!r} must be one of the release's own counts, or the values that count, such as "
        f"age=18..24; {advice}"
    )


def _tables_of(results: Any) -> Any:
    """The unbiased tables of results; where there are none, the error names what is there."""
    try:
        return results.unbiased_tables()
    except RpexploreError:
        remedies = []
        # Of whole counts and best guesses in areas only the release that they were made of answers.
        if any(part.area_levels and not part.is_biased for part in results.readers):
            remedies.append(
                "give --area CODE for one area, --level LEVEL for all of a level, or --areas FILE "
                "with lists of areas to add up"
            )
        if (counts := results.own_counts) is not None:
            names = shown_few(list(counts.queries.names))
            remedies.append(f"name one of the counts: {names}")
        if not remedies:
            raise
        raise RpexploreError(
            f"Values that count are answered from tables of the whole, and {str(results.named)!r} "
            f"holds {results.contents}; {'; or '.join(remedies)}."
        ) from None


# ---- Releases of tables in areas, and sums of areas.


def parts_in(folder: Path) -> list[str]:
    """The kinds of parts of a release, or of combined ones; none of another folder of results.

    Raises `ReleaseError` if it is neither.
    """
    from rpexplore.releases.finished_release import FORMAT
    from rpexplore.releases.manifest import read_manifest
    from rpexplore.results.combination import KIND
    from rpexplore.results.results import load_any_results

    if read_manifest(folder).get("format") not in (FORMAT[0], KIND[0]):
        return []
    return [part.kind for part in load_any_results(folder).readers]


def load_areas(folder: Path, option: str) -> "TablesInAreas":
    """A release of tables in areas, which `option` goes with."""
    from rpexplore.releases.manifest import read_manifest
    from rpexplore.results.estimates.area_counts import KIND
    from rpexplore.results.results import load_any_results

    if read_manifest(folder).get("format") == KIND[0]:
        raise ReleaseError(
            f"{str(folder)!r} holds whole counts, which are biased and have no exact errors; name "
            "the release that they were made of."
        )
    if "areas" not in parts_in(folder):
        raise ReleaseError(
            f"{option} goes with a release of tables in areas, and {str(folder)!r} holds none; "
            f"leave {option} out, or name the folder of such a release."
        )
    return load_any_results(folder).area_tables()


def planned_sums(plan: "Plan | PartPlan", areas: Path) -> "pd.DataFrame":
    """How accurate each table of a plan is for lists of areas, the least accurate first."""
    from rpexplore.domain.named_areas import lists_of_areas

    part = plan.part("areas")
    if part is None:
        raise RpexploreError(
            f"--areas goes with a plan for areas, and this is {plan.kind_text}; leave it out."
        )
    return part.accuracy_of_sums(lists_of_areas(part.workload.tree, areas))


def planned_sum_table(rows: "pd.DataFrame", count: int | None) -> str:
    """The first rows of `planned_sums` as a text table (None: as many as usual)."""
    from rpexplore.workload.table_text import title

    total, rows = len(rows), rows.head(_MOST_SUMS if count is None else count)
    errors = describe_numbers(rows["standard_error"].fillna(0))
    columns = {
        "list": rows["list"].tolist(),
        "table": [title(table) for table in rows["attributes"]],
        "areas": [f"{areas:,}" for areas in rows["areas"]],
        "standard error": [
            "" if missing else text
            for text, missing in zip(errors, rows["standard_error"].isna(), strict=True)
        ],
    }
    notes = {"note": rows["note"].tolist()} if any(rows["note"]) else {}
    more = total - len(rows)
    left_out = f"\n… and {more:,} more: --tables {total} shows all." if more else ""
    return text_table({**columns, **notes}, "<<>>" + "<" * len(notes)) + left_out


def tables_of_area(folder: Path, area: str) -> "tuple[AreaTables, Domain]":
    """What a release has on one area, by its codes, and the attributes of it."""
    from rpexplore.domain.named_areas import typed_area
    from rpexplore.planning.areas.area_sums import area_number
    from rpexplore.results.area_results import AreaResults

    results = AreaResults(load_areas(folder, "--area"))
    number = area_number(results.tree, typed_area(area))
    return results.of_area(number), results.plan.domain


def answer_sums(
    folder: Path,
    areas: Path | str,
    attributes: Sequence[str],
    *,
    rows: "Rows",
) -> None:
    """Print a table of a release of areas, summed over lists of areas.

    areas: a file of lists, or the codes of one area
    """
    from rpexplore.domain.named_areas import lists_of_areas, typed_area

    rows.check()
    option = "--area" if isinstance(areas, str) else "--areas"
    with progress("Reading the release"):
        release = load_areas(folder, option)
        names = release.plan.domain.names
        for attribute in attributes:
            if attribute not in names:
                raise RpexploreError(
                    f"With {option}, {attribute!r} must be an attribute of the plan, one of "
                    f"{', '.join(names)}; all values of these are answered."
                )
        if isinstance(areas, str):
            sums = release.sums_of_areas(typed_area(areas), *attributes)
        else:
            sums = release.sums_of_areas(lists_of_areas(release.tree, areas), *attributes)
    rows.say({"attributes": list(attributes)}, sums, key="sums")


def answer_on_level(
    folder: Path,
    level: str,
    within: str | None,
    where: Sequence[str],
    *,
    rows: "Rows",
) -> None:
    """Print the answer of each area of a level to a query, which names values."""

    rows.check()
    with progress("Reading the release"):
        shown, domain = areas_side_by_side(folder, level, within)
        answers = shown.answers(where=texts_of(domain, where))
    rows.say({"question": list(where)}, answers)


def areas_side_by_side(folder: Path, level: str, within: str | None) -> "tuple[AreaTables, Domain]":
    """The tables of the areas of a level, or of those that lie in one, and their attributes."""
    from rpexplore.domain.named_areas import typed_area
    from rpexplore.planning.areas.area_sums import area_number
    from rpexplore.results.area_results import AreaResults

    results = AreaResults(load_areas(folder, "--level"))
    tree, domain = results.tree, results.plan.domain
    if level not in tree.levels:
        raise RpexploreError(
            f"There is no level {level!r}; the levels are {', '.join(tree.levels)}."
        )
    number = tree.levels.index(level)
    top = 0 if within is None else area_number(tree, typed_area(within))
    if int(tree.level_of[top]) > number:
        raise RpexploreError(
            f"The area {within!r} has no areas on the level {level!r}, which is above it."
        )
    areas, empty = results.within(top, number), tree.empty_on(number, top)
    return results.side_by_side(number, areas, empty), domain


@dataclass(frozen=True)
class Rows:
    """How rows of answers are given: the first as text, or all as JSON; and in a file if one is
    named."""

    csv: Path | None
    escape_formulas: bool
    force: bool
    as_json: bool

    def check(self) -> None:
        """Raise `RpexploreError` if the file is there already."""
        if self.csv is not None:
            refuse_existing(self.csv, self.force)

    def say(self, facts: dict[str, Any], answers: "pd.DataFrame", key: str = "answers") -> None:
        """Print answers, and write them; facts: on what they answer."""
        from rpexplore.cli.facts import row_facts

        if self.csv is not None:
            content = csv_of_frame(answers, escape_formulas=self.escape_formulas)
            write_new(self.csv, content, self.force)
        facts |= {key: row_facts(answers), "csv": self.csv and str(self.csv)}
        first = answers.head(_MOST_SUMS)
        text = answers_table(first)
        if self.csv is not None:
            text += f"\n\nAll {len(answers):,} rows are in {self.csv}."
        elif len(answers) > len(first):
            text += f"\n… and {len(answers) - len(first):,} more rows: --csv FILE writes all."
        say_result(self.as_json, facts, text)


def answer_shares(
    folder: Path,
    where: Sequence[str],
    per: Sequence[str],
    among: Sequence[str],
    *,
    area: str | None,
    level: str | None,
    within: str | None,
    rows: "Rows",
) -> None:
    """Print what per cent a selection is of the records with each value of `per`."""
    import pandas as pd

    from rpexplore.domain.result_schema import Schema
    from rpexplore.results.results import load_any_results
    from rpexplore.results.shares import SHARES, mean_of_counts, share_of_counts, shares

    rows.check()
    with progress("Reading the release"):
        results = load_any_results(folder)
        counts = results.own_counts
        name = _count_named(counts, where) if area is None and level is None else None
        if name is not None:
            assert counts is not None
            whole = _count_named(counts, per)
            if among or whole is None:
                raise RpexploreError(
                    f"The count {where[0]!r} is a share of another own count; name that one by "
                    "--per, and nothing else."
                )
            queries = counts.queries
            sums = [queries.adds_up_amounts(queries.names.index(one)) for one in (name, whole)]
            if sums == [True, False]:
                mean = mean_of_counts(counts, name, whole)
                unit = unit_of_count(counts, name)
                unit = unit._replace(text=unit.text.replace("sum of", "mean of"))
                facts = {"question": list(where), "per": list(per)}
                facts |= {key: getattr(mean, key) for key in _FIGURES} | unit.facts
                text = f"Mean\n{_answer_text(mean, unit)}"
                say_result(as_json=rows.as_json, facts=facts, text=text)
                return
            share = share_of_counts(counts, name, whole)
            columns = [one.name for one in SHARES]
            answers = Schema(SHARES).marked(pd.DataFrame([share], columns=columns))
        else:
            tables: Any
            if level is not None:
                tables, domain = areas_side_by_side(folder, level, within)
            elif area is not None:
                tables, domain = tables_of_area(folder, area)
            else:
                _refuse_no_count(counts, where)
                tables = _tables_of(results)
                domain = tables.domain
            counted, base = query_of(domain, where), query_of(domain, among, "--among")
            if not counted:
                raise RpexploreError(
                    f"--per needs what is counted, {_EXAMPLE}; name values of some attribute."
                )
            names = [name for name in per if name != "total" or name in domain.names]
            for name in names:
                if name not in domain.names:
                    raise RpexploreError(
                        f"--per {name!r} must be an attribute, one of {', '.join(domain.names)}, "
                        "or total."
                    )
            answers = shares(tables, counted, per=names, among=base)
    rows.say({"question": list(where), "per": list(per), "among": list(among)}, answers)


def answers_table(rows: "pd.DataFrame") -> str:
    """Answers as a text table: what each is about, its value, standard error and interval."""
    from rpexplore.domain.result_schema import Schema

    schema = Schema.of(rows)
    columns = {one.name: rows[one.name].astype(str).tolist() for one in schema.labels}
    unit = next(one.unit for one in schema.figures)
    is_known = ~rows[schema.name("value")].isna()
    per_cent = f" {unit}" if unit == "%" else ""
    errors = iter(describe_numbers(rows.loc[is_known, schema.name("error")]))
    columns["value"] = [
        f"{value:,.2f}{per_cent}" if known else "too few"
        for value, known in zip(rows[schema.name("value")], is_known, strict=True)
    ]
    columns["standard error"] = [next(errors) if known else "" for known in is_known]
    columns["95 % interval"] = [
        f"{low:,.2f} to {high:,.2f}" if known else ""
        for low, high, known in zip(
            rows[schema.name("lower")], rows[schema.name("upper")], is_known, strict=True
        )
    ]
    return text_table(columns, "<" * len(schema.labels) + ">>>")
