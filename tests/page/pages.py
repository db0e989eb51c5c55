"""Models and pages that several tests look at."""

from __future__ import annotations

import base64
import gzip
import json
import re
from typing import Any

import numpy as np
import pandas as pd

from latenttree.estimator import LatentTree

WICKED = (
    '</script><script>alert("x")</script>',
    "<b>bold</b>",
    'it\'s "quoted" & so',
    "zwei\nlines",
    "naïve 蛇 🐍",
    "",
)


def data_of(text: str) -> Any:
    """What is packed into a page."""
    packed = re.search(r'<script type="text/plain" id="data">([^<]*)</script>', text)
    assert packed is not None
    return json.loads(gzip.decompress(base64.b64decode(packed[1])))


def survey(n: int = 600, seed: int = 0) -> pd.DataFrame:
    """Twelve answers of yes and no about three opinions, one of them turned round."""
    rng = np.random.default_rng(seed)
    general = rng.random(n) < 0.5
    columns = {}
    for topic in ("sport", "music", "food"):
        likes = np.where(rng.random(n) < 0.75, general, rng.random(n) < 0.5)
        for i in range(4):
            turned = topic == "food" and i == 3
            columns[f"{topic}_{i}"] = np.where(rng.random(n) < 0.12, ~likes, likes) ^ turned
    frame = pd.DataFrame(columns)
    return frame.replace({True: "yes", False: "no"})


def fitted(X: Any, **options: Any) -> LatentTree:
    """A model, quickly."""
    return LatentTree(**({"n_states": 2, "support": "model", "random_state": 0} | options)).fit(X)
