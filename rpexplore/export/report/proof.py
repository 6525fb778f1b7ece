"""What a report gives as evidence: the certificate, what was recomputed, versions and hashes."""

import hashlib
import platform
from collections.abc import Sequence
from importlib.metadata import version

from rpexplore.export.report.kinds import PlanWords, Words
from rpexplore.export.report.section import Facts, Section, template_blocks
from rpexplore.planning.part_plan import PartPlan
from rpexplore.planning.plan import Plan
from rpexplore.planning.verification import Check

PRIVACY_ALONE = (
    "Proven is the guarantee, whatever is selected. Of the accuracy of its tables nothing is "
    "claimed before they are released."
)


def proof(words: Words, checks: Sequence[Check]) -> Section:
    """The certificate of a part in words and numbers, and what was recomputed."""
    certificate = getattr(words.part, "certificate", None)
    if certificate is None:
        sentences, parts = [PRIVACY_ALONE], []
    else:
        asked = PlanWords((words,)).asked
        sentences, *rows = template_blocks(
            "proof.txt.j2", plan=words.part, certificate=certificate, words=words, asked=asked
        )
        parts = [Facts(rows)]
    recomputed = Facts(
        [(f"✓ {check.name}", f"{check.finding}.") for check in checks],
        title="Recomputed for this report, from the plan alone (privacy cost: 2ρ)",
    )
    return Section("Proof", sentences, (*parts, recomputed))


def versions(plan: Plan | PartPlan, words: PlanWords) -> Section:
    """What made the plan and this report, and how to tell the plan from any other."""
    codebook = plan.domain.text("codebook.json")
    programs = [f"{name} {version(name)}" for name in ("rpexplore", "numpy", "scipy")]
    facts = template_blocks(
        "versions.txt.j2",
        plan=plan,
        kind=words,
        companions=", ".join(plan.companions),
        codebook_sha256=hashlib.sha256(codebook.encode()).hexdigest(),
        programs=[*programs, f"Python {platform.python_version()}"],
    )
    return Section("Versions and hashes", (), (Facts(facts),))
