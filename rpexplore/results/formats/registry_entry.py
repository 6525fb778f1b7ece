"""An entry of OpenDP's registry of deployments of differential privacy, as YAML.

https://registry.opendp.org; fields and permitted values are those of its schema for entries
(opendp/deployments-registry-data, July 2026), tier 3. What a release, its plan and the report on it
say is filled in, in their words; eight values only a person knows. The entry is a draft: who hands
it in reads it first.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date
from pathlib import Path
from typing import Any
from unicodedata import combining, normalize

from rpexplore.common.numbers import float_at_least, shown_value
from rpexplore.common.text import capitalised, is_text, joined, plural, yaml_text
from rpexplore.domain.domain import describe_attributes_from_records
from rpexplore.errors import ReleaseError
from rpexplore.planning.plan import Plan
from rpexplore.privacy.conversions import USUAL_DELTAS
from rpexplore.releases.finished_release import FORMAT as RELEASE
from rpexplore.releases.finished_release import Release
from rpexplore.releases.manifest import manifest_sha256, read_manifest
from rpexplore.releases.readme import describe_counted
from rpexplore.reports.evidence import nist_checklist
from rpexplore.reports.first_pages import label
from rpexplore.reports.section import Checklist, Facts

SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")


@dataclass(frozen=True)
class RegistryAnswers:
    """What only a person knows of a release. The first eight are needed, the others are not.

    name           of the data product
    curators       who publishes it
    intended_use   what the figures are for
    region         what region the data describe, or whose laws apply
    sector         one of `SECTORS`
    actors         who sees what, and why each of them is trusted
    justification  how budget, tables and mechanism were chosen, and why
    authors        who fills in the entry
    published      the day of publication; that of the release if left out
    exploration    what was done with the records before, and whether privacy loss was counted
    future         plans for later releases of the same records
    sources        links to the figures and to papers on them
    """

    name: str = ""
    curators: tuple[str, ...] = ()
    intended_use: str = ""
    region: str = ""
    sector: str = ""
    actors: str = ""
    justification: str = ""
    authors: tuple[str, ...] = ()
    published: str = ""
    exploration: str = ""
    future: str = ""
    sources: str = ""

    @property
    def missing(self) -> list[str]:
        """Which of the eight are missing."""
        return [name for name in NEEDED if not getattr(self, name)]

    def checked(self) -> "RegistryAnswers":
        """Without blanks at the ends; raises `ReleaseError` for what is missing or cannot be."""
        answers = replace(
            self, **{field.name: _trimmed(getattr(self, field.name)) for field in fields(self)}
        )
        if answers.missing:
            are = "is" if len(answers.missing) == 1 else "are"
            raise ReleaseError(
                "An entry of the registry needs what only a person knows: "
                f"{joined(answers.missing)} {are} missing."
            )
        for name, text in vars(answers).items():
            if not all(map(is_text, [text] if isinstance(text, str) else text)):
                raise ReleaseError(
                    f"The {name} must be text that files can hold, got {shown_value(text)}."
                )
        if answers.sector not in SECTORS:
            raise ReleaseError(
                f"The sector must be {joined(SECTORS, ' or ')}, got {answers.sector!r}."
            )
        if answers.published and not _is_day(answers.published):
            raise ReleaseError(
                f"The day of publication must be YYYY-MM-DD, got {answers.published!r}."
            )
        return answers


NEEDED = tuple(field.name for field in fields(RegistryAnswers))[:8]


def registry_text(folder: str | Path, answers: RegistryAnswers) -> str:
    """The entry of a release as YAML.

    Args:
        folder: Of a release of any kind: of tables, of queries, of tables in areas, adaptive.

    Raises:
        ReleaseError: If the folder holds no release, or one that was changed; for answers that are
            missing or cannot be.
    """
    answers = answers.checked()
    return yaml_text(registry_entry(load_release(folder), answers))


def load_release(folder: str | Path) -> Release:
    """The release in a folder; raises `ReleaseError` if there is none."""
    folder = Path(folder)
    manifest = read_manifest(folder)
    if manifest.get("format") == RELEASE[0]:
        return Release.load(folder)
    sources = manifest.get("sources")
    if isinstance(sources, list) and sources:
        names = ", ".join(str(source.get("name")) for source in sources if isinstance(source, dict))
        raise ReleaseError(
            f"{str(folder)!r} holds what was made of releases; name a release itself ({names})."
        )
    raise ReleaseError(f"{str(folder)!r} holds no release; name the folder of one.")


def registry_entry(release: Release, answers: RegistryAnswers) -> dict[str, Any]:
    """The entry, with all fields of tier 3 that are known."""
    plan, manifest = release.plan, release.manifest
    told = _report_sentences(plan)
    published = answers.published or manifest["finished"][:10]
    delta = plan.budget.stated_delta or USUAL_DELTAS[0]
    found = describe_attributes_from_records(plan.domain)
    deployment = {
        "basic": {
            "name": answers.name,
            "data_curators": list(answers.curators),
            "intended_use": answers.intended_use,
            "data_product_type": "Summary statistics",
            "data_product_region": answers.region,
            "description": _description(plan),
            "publication_date": published,
            "data_product_sector": answers.sector,
        },
        "dp_variant": {
            "variant_name": "Zero-concentrated DP",
            "data_domain": "Any number of records, each with one of the values that the codebook "
            f"lists of {_attributes(plan)}.",
            "unprotected_quantities": f"The values of {found}: they were taken from the records."
            if found
            else told.get("Mixing with other releases", "None."),
        },
        "privacy_loss": {
            "privacy_unit": capitalised(plan.budget.unit),
            "privacy_unit_details": _text(
                # Which says that nobody sees to it, as it is written before the run.
                manifest["records_per_person"] or told.get("Who is protected"),
                told.get("Neighbouring data"),
            ),
            "privacy_parameters": {
                "epsilon": plan.epsilon(delta),
                "delta": float(delta),
                "rho": float_at_least(plan.rho),
            },
            "privacy_parameters_details": plan.guarantee,
        },
        "deployment_model": {
            "model_name": "Central",
            "model_name_details": told.get("Mechanism", ""),
            "actors": answers.actors,
            "release_type": "One release",
            "release_type_details": _text(told.get("What it covers"), answers.future),
            "data_source_type": "Static",
            "access_type": "Non-interactive",
            "access_type_details": told.get("Query model", ""),
        },
        "accounting": {
            "post_processing": f"{capitalised(manifest['postprocessing'])}.",
            "composition": told.get("Budget over several releases", ""),
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": _text(
                told.get("Choices that depend on data"),
                describe_counted(
                    manifest["unknown_values"],
                    manifest.get("missing_values", {}),
                    count_impossible=manifest.get("count_impossible", False),
                ).strip(),
                answers.exploration,
            ),
            "mechanisms": _text(
                told.get("Mechanism"),
                told.get("Sensitivity"),
                told.get("Floating point and randomness") or f"{capitalised(manifest['noise'])}.",
                told.get("Side channels"),
                told.get("Data security and access control"),
                f"rpexplore {manifest['versions']['rpexplore']}.",
            ),
            "justification": _text(answers.justification, getattr(plan, "proven", "")),
        },
        "administrative": {
            "sources": answers.sources,
            "notes": f"SHA-256 of the plan {plan.sha256}, of the manifest of the release "
            f"{manifest_sha256(release.folder)}.",
            "registry_authors": list(answers.authors),
        },
    }
    return {
        "url_slug": f"{_slug(answers.name)}-{published[:4]}",
        "status": "Draft",
        "tier": 3,
        "deployment": {part: _filled(fields) for part, fields in deployment.items()},
    }


def _report_sentences(plan: Plan) -> dict[str, str]:
    """What the report on a plan says, by the term or the point."""
    (checklist,) = (
        part for part in nist_checklist(plan, "records").parts if isinstance(part, Checklist)
    )
    facts = next(part for part in label(plan).parts if isinstance(part, Facts))
    return {
        **{point: settled for point, settled, *_ in checklist.rows},
        **{term: " ".join(sentences) for term, *sentences in facts.rows},
    }


def _description(plan: Plan) -> str:
    """ "56 noisy tables of age, sex and region. …"."""
    statements = " ".join(dict.fromkeys(part.accuracy_statement for part in plan.parts))
    return f"{capitalised(plan.contents)} of {_attributes(plan)}. {statements}"


def _attributes(plan: Plan) -> str:
    """The attributes that are asked for, with their numbers of values."""
    attributes = dict.fromkeys(
        part.domain.attributes[index] for part in plan.parts for index in part.attribute_indices
    )
    return joined(
        [f"{attribute.name} ({plural(attribute.size, 'value')})" for attribute in attributes]
    )


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _slug(text: str) -> str:
    """Small letters, digits and hyphens."""
    letters = "".join(sign for sign in normalize("NFKD", text) if not combining(sign))
    return re.sub(r"[^a-z0-9]+", "-", letters.lower()).strip("-") or "release"


def _text(*parts: str | None) -> str:
    return "\n\n".join(part for part in parts if part)


def _filled(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in ("", [])}


def _trimmed(value: str | Sequence[str]) -> Any:
    if isinstance(value, str):
        return value.strip()
    return tuple(filter(None, (text.strip() for text in value)))
