"""What a report gives as evidence: the certificate, what was recomputed, versions and hashes."""

import hashlib
import platform
from importlib.metadata import version

from rpexplore.common.formatting import rounded
from rpexplore.export.report.section import Facts, Section
from rpexplore.planning.plan import Plan
from rpexplore.planning.verification import Verification

_SOURCES = (
    "Plan: Xiao, He, Zhang, Kifer: An Optimal and Scalable Matrix Mechanism for Noisy Marginals "
    "under Convex Loss Functions, NeurIPS 2023.",
    "Noise, and ε from ρ: Canonne, Kamath, Steinke: The Discrete Gaussian for Differential "
    "Privacy, NeurIPS 2020.",
    "What can be told of a single case: Kairouz, Oh, Viswanath: The Composition Theorem for "
    "Differential Privacy, ICML 2015.",
    "Checklist: Near, Darais, Lefkovitz, Howarth: Guidelines for Evaluating Differential Privacy "
    "Guarantees, NIST SP 800-226, 2025.",
)

_SOURCE_OF_BASES = (
    "Ranges, cumulative counts, hierarchies: He, Xiao, Toksoz, Ding, Zhang, Kifer: "
    "ResidualPlanner+: a scalable matrix mechanism for marginals and beyond, VLDB Journal."
)


def proof(plan: Plan, verified: Verification) -> Section:
    """The certificate in words and numbers, and what was recomputed."""
    certificate = plan.certificate
    gap = rounded(certificate.gap, 2, "up")
    facts = Facts(
        (
            ("Objective", (f"Minimise {plan.loss.description}.",)),
            ("Its value in this plan", (rounded(certificate.loss_value, 9),)),
            ("No plan can go below", (rounded(certificate.lower_bound, 9, "down"),)),
            ("The gap is at most", (f"{gap} of that (relative).",)),
        )
    )
    measured = "" if plan.workload.is_marginals else ", with attributes measured as they are here"
    checks = Facts(
        tuple((f"✓ {check.name}", (f"{check.finding}.",)) for check in verified.checks),
        title="Recomputed for this report, from the plan alone (privacy cost: 2ρ)",
    )
    return Section(
        "Proof",
        (
            plan.proven,
            "The bound is a dual bound: it follows from the tables, the objective and the budget, "
            f"and holds for every choice of Gaussian noise on the residuals{measured}. "
            "Anybody can recompute it with “rpexplore verify plan.json”.",
        ),
        (facts, checks),
    )


def versions(plan: Plan) -> Section:
    """What made the plan and this report, and how to tell the plan from any other."""
    sha256 = hashlib.sha256(plan.workload.domain.text("codebook.json").encode()).hexdigest()
    programs = [f"{name} {version(name)}" for name in ("rpexplore", "numpy", "scipy")]
    programs.append(f"Python {platform.python_version()}")
    facts = (
        ("Plan", (f"SHA-256 {plan.sha256} (plan.json)",)),
        ("Codebook", (f"SHA-256 {sha256} (codebook.json)",)),
        ("Plan made by", (f"rpexplore {plan.version}",)),
        ("Report made by", (", ".join(programs),)),
        ("Methods", _SOURCES if plan.workload.is_marginals else (*_SOURCES, _SOURCE_OF_BASES)),
    )
    return Section("Versions and hashes", (), (Facts(facts),))
