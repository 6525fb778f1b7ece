"""The baselines that there are."""

from rpexplore.planning.baselines import attribute_strategies as strategies
from rpexplore.planning.baselines.base import Baseline
from rpexplore.planning.baselines.best_product import BestProduct
from rpexplore.planning.baselines.marginals import BestMarginals, DataCube, Fourier
from rpexplore.planning.baselines.p_identity import p_identity
from rpexplore.planning.baselines.products import Product
from rpexplore.planning.baselines.tables import OneByOne, SameNoise

_HDMM = "{} of HDMM, McKenna et al. 2018"

# At the same privacy cost, with Gaussian noise.
BASELINES: tuple[Baseline, ...] = (
    Product(
        "cells",
        "noise in every cell",
        "Dwork et al. 2006",
        strategies.single_values,
        is_general=True,
    ),
    SameNoise("tables", "the same noise in every table", "Dwork et al. 2006"),
    OneByOne("one-by-one", "every table planned by itself", _HDMM.format("OPT_+")),
    Product("h2", "binary hierarchies", "H2, Hay et al. 2010", strategies.binary_tree),
    Product("hb", "hierarchies of the best width", "HB, Qardaji et al. 2013", strategies.wide_tree),
    Product("wavelets", "wavelets", "Privelet, Xiao et al. 2010", strategies.wavelet),
    Fourier("fourier", "Fourier coefficients", "Barak et al. 2007"),
    DataCube("data-cube", "a choice of marginals", "DataCube, Ding et al. 2011"),
    BestProduct("product", "the best product", _HDMM.format("OPT_⊗")),
    BestMarginals("marginals", "the best marginals", _HDMM.format("OPT_M")),
)

# With Laplace noise, at ε = 1 and up to a factor of two.
LAPLACE_BASELINES: tuple[Baseline, ...] = (
    SameNoise("tables", "the same noise in every table", "Dwork et al. 2006", norm=1),
    *(
        Product(name, title, source, measure, norm=1, is_general=name == "cells")
        for name, title, source, measure in (
            ("cells", "noise in every cell", "Dwork et al. 2006", strategies.single_values),
            ("h2", "binary hierarchies", "H2, Hay et al. 2010", strategies.binary_tree),
            (
                "hb",
                "hierarchies of the best width",
                "HB, Qardaji et al. 2013",
                strategies.wide_tree,
            ),
            ("wavelets", "wavelets", "Privelet, Xiao et al. 2010", strategies.wavelet),
            ("greedy", "weighted hierarchies", "GreedyH, Li et al. 2014", strategies.greedy_tree),
            ("product", "the best product found", _HDMM.format("OPT_⊗"), p_identity),
        )
    ),
)
