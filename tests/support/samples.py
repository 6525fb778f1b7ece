"""The records of the samples, as codes of their codebooks."""

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

import rpexplore as rp
from rpexplore.data.coding import coders

FOLDER = Path(__file__).parents[2] / "sample_data"


@cache
def coded(name: str) -> tuple[rp.Domain, np.ndarray]:
    """The codebook of a sample, and int64[n_records, n_attributes]: the value of each record."""
    domain = rp.Domain.load(FOLDER / f"{name}.json")
    (path,) = (path for path in FOLDER.glob(f"{name}.csv*"))
    records = pd.read_csv(path, dtype=str, keep_default_na=False)
    columns = coders(domain, range(len(domain))).values()
    codes = [coder.signed_codes(pa.array(records[coder.name])) for coder in columns]
    return domain, np.stack(codes, axis=1).astype(np.int64)
