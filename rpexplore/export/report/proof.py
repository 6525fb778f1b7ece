"""What a report gives as evidence: the certificate, what was recomputed, versions and hashes."""

import hashlib
import platform
from importlib.metadata import version

from rpexplore.export.report.section import Facts, Section, template_blocks
from rpexplore.planning.plan import Plan
from rpexplore.planning.verification import Verification


def proof(plan: Plan, verified: Verification) -> Section:
    """The certificate in words and numbers, and what was recomputed."""
    sentences, *facts = template_blocks("proof.txt.j2", plan=plan, certificate=plan.certificate)
    checks = Facts(
        [(f"✓ {check.name}", f"{check.finding}.") for check in verified.checks],
        title="Recomputed for this report, from the plan alone (privacy cost: 2ρ)",
    )
    return Section("Proof", sentences, (Facts(facts), checks))


def versions(plan: Plan) -> Section:
    """What made the plan and this report, and how to tell the plan from any other."""
    codebook = plan.workload.domain.text("codebook.json")
    programs = [f"{name} {version(name)}" for name in ("rpexplore", "numpy", "scipy")]
    facts = template_blocks(
        "versions.txt.j2",
        plan=plan,
        codebook_sha256=hashlib.sha256(codebook.encode()).hexdigest(),
        programs=[*programs, f"Python {platform.python_version()}"],
    )
    return Section("Versions and hashes", (), (Facts(facts),))
