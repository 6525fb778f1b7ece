"""What a report gives as evidence: the certificate, what was recomputed, versions and hashes."""

import hashlib
import platform
from importlib.metadata import version

from rpexplore.export.report.kinds import ReportedPlan, kind_of
from rpexplore.export.report.section import Facts, Section, template_blocks
from rpexplore.planning.part_plan import CertifiedPlan
from rpexplore.planning.verification import Verification

PRIVACY_ALONE = (
    "Proven is the guarantee, whatever is selected. Of the accuracy of its tables nothing is "
    "claimed before they are released."
)


def proof(plan: ReportedPlan, verified: Verification) -> Section:
    """The certificate in words and numbers, and what was recomputed."""
    if isinstance(plan, CertifiedPlan):
        sentences, *rows = template_blocks(
            "proof.txt.j2", plan=plan, certificate=plan.certificate, bound=kind_of(plan).bound_of
        )
        parts = [Facts(rows)]
    else:
        sentences, parts = [PRIVACY_ALONE], []
    checks = Facts(
        [(f"✓ {check.name}", f"{check.finding}.") for check in verified.checks],
        title="Recomputed for this report, from the plan alone (privacy cost: 2ρ)",
    )
    return Section("Proof", sentences, (*parts, checks))


def versions(plan: ReportedPlan) -> Section:
    """What made the plan and this report, and how to tell the plan from any other."""
    codebook = plan.domain.text("codebook.json")
    programs = [f"{name} {version(name)}" for name in ("rpexplore", "numpy", "scipy")]
    facts = template_blocks(
        "versions.txt.j2",
        plan=plan,
        kind=kind_of(plan),
        companions=", ".join(plan.companions),
        codebook_sha256=hashlib.sha256(codebook.encode()).hexdigest(),
        programs=[*programs, f"Python {platform.python_version()}"],
    )
    return Section("Versions and hashes", (), (Facts(facts),))
