"""multi-freq-ldpy's longitudinal protocols on given answers; runs in a separate environment without our packages.

    in    stdin: JSON {answers: path of a .npy [runs, people], symbols, epsilon}
    out   stdout: JSON {protocol: estimated shares, [runs, symbols]}

Each protocol reports each answer once, as a collector sees it in one week. Its budget is for each different answer of a
person, for any number of reports; `eps_1`, for a single report, is half of that.
"""

import json
import sys

import numpy as np
from multi_freq_ldpy.long_freq_est.L_GRR import L_GRR_Aggregator_MI, L_GRR_Client
from multi_freq_ldpy.long_freq_est.L_OSUE import L_OSUE_Aggregator_MI, L_OSUE_Client
from multi_freq_ldpy.long_freq_est.L_OUE import L_OUE_Aggregator_MI, L_OUE_Client
from multi_freq_ldpy.long_freq_est.L_SUE import L_SUE_Aggregator_MI, L_SUE_Client

PROTOCOLS = {
    "L-GRR": (L_GRR_Client, L_GRR_Aggregator_MI),
    "L-OSUE": (L_OSUE_Client, L_OSUE_Aggregator_MI),
    "L-OUE": (L_OUE_Client, L_OUE_Aggregator_MI),
    "L-SUE (RAPPOR)": (L_SUE_Client, L_SUE_Aggregator_MI),
}


def main() -> None:
    asked = json.load(sys.stdin)
    runs, symbols, epsilon = np.load(asked["answers"]), asked["symbols"], asked["epsilon"]
    found: dict[str, list[list[float]]] = {name: [] for name in PROTOCOLS}
    for answers in runs.tolist():
        for name, (client, aggregate) in PROTOCOLS.items():
            reports = [client(answer, symbols, epsilon, epsilon / 2) for answer in answers]
            size = (symbols,) if name == "L-GRR" else ()  # reports of the other protocols hold their size
            shares = aggregate(reports, *size, epsilon, epsilon / 2)
            found[name].append([float(share) for share in shares])
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
