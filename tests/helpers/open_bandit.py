"""A wheel in the shape of obp's, with two small random logs."""

import zipfile
from pathlib import Path

import numpy as np

HEADER = ",timestamp,item_id,position,click,propensity_score,user_feature_0\n"


def write_wheel(path: Path, records: int = 300, seed: int = 0) -> Path:
    """Write logs of three articles at two positions; article 2 is clicked on most often."""
    rng = np.random.default_rng(seed)
    click_rate = np.array([0.1, 0.1, 0.4])
    policies = {"random": np.full(3, 1 / 3), "bts": np.array([0.2, 0.2, 0.6])}
    with zipfile.ZipFile(path, "w") as wheel:
        for policy, probability in policies.items():
            item = rng.choice(3, size=records, p=probability)
            click = rng.random(records) < click_rate[item]
            position = rng.integers(1, 3, size=records)
            lines = [HEADER]
            for i in range(records):
                lines.append(
                    f"{i},2019-11-24,{item[i]},{position[i]},{int(click[i])},"
                    f"{probability[item[i]]},x\n"
                )
            wheel.writestr(f"obp/dataset/obd/{policy}/men/men.csv", "".join(lines))
    return path
