"""What a report gives as evidence: the certificate, what was recomputed, versions and hashes."""

import hashlib
import platform
from importlib.metadata import version

from rpexplore.export.report.privacy_label import ReportedPlan
from rpexplore.export.report.section import Facts, Section, template_blocks
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.verification import Verification


def proof(plan: ReportedPlan, verified: Verification) -> Section:
    """The certificate in words and numbers, and what was recomputed."""
    sentences, *facts = template_blocks(
        "proof.txt.j2", plan=plan, certificate=plan.certificate, bound=_bound(plan)
    )
    checks = Facts(
        [(f"✓ {check.name}", f"{check.finding}.") for check in verified.checks],
        title="Recomputed for this report, from the plan alone (privacy cost: 2ρ)",
    )
    return Section("Proof", sentences, (Facts(facts), checks))


def _bound(plan: ReportedPlan) -> str:
    """What the bound holds for."""
    if isinstance(plan, AreaPlan):
        shared = ", the same in all areas of a level" if plan.uniform else ""
        noise = f"every choice of independent Gaussian noise on the residuals of every area{shared}"
        is_marginals = plan.workload.tables.is_marginals
        return noise if is_marginals else f"{noise}, with attributes measured as they are here"
    noise = "every choice of Gaussian noise on the residuals"
    return (
        noise
        if plan.workload.is_marginals
        else f"{noise}, with attributes measured as they are here"
    )


def versions(plan: ReportedPlan) -> Section:
    """What made the plan and this report, and how to tell the plan from any other."""
    codebook = plan.domain.text("codebook.json")
    programs = [f"{name} {version(name)}" for name in ("rpexplore", "numpy", "scipy")]
    facts = template_blocks(
        "versions.txt.j2",
        plan=plan,
        is_of_areas=isinstance(plan, AreaPlan),
        companions=", ".join(plan.companions),
        codebook_sha256=hashlib.sha256(codebook.encode()).hexdigest(),
        programs=[*programs, f"Python {platform.python_version()}"],
    )
    return Section("Versions and hashes", (), (Facts(facts),))
